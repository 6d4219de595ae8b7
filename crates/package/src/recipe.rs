//! Formats relations for the tools with which maintainers make their own packages.

use gfxpack_model::package::{Relation, RelationKind};

use crate::deb;
use crate::text::plain_operator;

/// Variables for the template of a control file:
/// `("gfxpack:Provides", "a (= 1.0-1), b (= 1.0-1)")`. All variables are included; dpkg leaves
/// empty ones out of the control file.
///
/// Source: deb-substvars(5).
pub fn substvars(
    relations: &[Relation],
    deb_fields: &[(String, String)],
) -> Vec<(&'static str, String)> {
    let related = |kind: RelationKind| {
        let of_kind = relations.iter().filter(|relation| relation.kind == kind);
        of_kind.map(deb::relation).collect::<Vec<_>>().join(", ")
    };
    let field = |name: &str| {
        let found = deb_fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    vec![
        ("gfxpack:Enhances", related(RelationKind::Enhances)),
        ("gfxpack:Provides", related(RelationKind::Provides)),
        ("gfxpack:Conflicts", related(RelationKind::Conflicts)),
        ("gfxpack:Replaces", related(RelationKind::Replaces)),
        ("gfxpack:Modaliases", field("Modaliases")),
        ("gfxpack:GPU-Architecture", field("X-ROCm-GPU-Architecture")),
    ]
}

/// Dependencies of one kind, one per line, as rpm's generators print them:
/// `a = 1.0-1`.
///
/// Source: rpm, "Automatically generating package dependencies".
pub fn rpm_dependencies(relations: &[Relation], kind: RelationKind) -> Vec<String> {
    let of_kind = relations.iter().filter(|relation| relation.kind == kind);
    let line = |relation: &Relation| match &relation.version {
        None => relation.name.clone(),
        Some((operator, version)) => {
            format!("{} {} {version}", relation.name, plain_operator(operator))
        }
    };
    of_kind.map(line).collect()
}
