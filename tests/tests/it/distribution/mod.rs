//! The packages with distributions and their tools: lintian, rpmlint, appstreamcli and an SPDX
//! validator check them; apt, dnf and zypper install them from signed repositories.

mod apt;
mod choice;
mod dnf;
mod earlier;
mod formats;
mod judges;
pub(crate) mod lab;
mod licences;
mod recipes;
mod signatures;
mod verify;
mod zypper;
