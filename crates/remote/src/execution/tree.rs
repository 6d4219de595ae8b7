//! An input root in the service's form: one message per directory, named by its digest.

use std::collections::BTreeMap;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use gfxpack_compile::{Content, InputFile, InputRoot};
use gfxpack_model::Digest;
use prost::Message;

/// A blob and where its content is.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) content: Content,
}

impl Blob {
    pub(crate) fn from_message(message: &impl Message) -> Self {
        Self::bytes(message.encode_to_vec())
    }

    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
        Self { digest, size, content: Content::Bytes(bytes.into()) }
    }

    /// Its digest in messages.
    pub(crate) fn api(&self) -> api::Digest {
        api::Digest { hash: self.digest.to_string(), size_bytes: self.size as i64 }
    }
}

/// A whole input root.
pub(crate) struct Tree {
    pub(crate) root: api::Digest,
    /// Files and directories, each once.
    pub(crate) blobs: Vec<Blob>,
}

#[derive(Default)]
struct Directory<'a> {
    files: BTreeMap<&'a str, &'a InputFile>,
    directories: BTreeMap<&'a str, Directory<'a>>,
}

impl<'a> Directory<'a> {
    fn below(&mut self, path: &'a str) -> &mut Self {
        path.split('/')
            .filter(|part| !part.is_empty())
            .fold(self, |directory, part| directory.directories.entry(part).or_default())
    }

    /// Adds the directory's message, after those of everything below it. Entries are sorted by
    /// name, as the protocol requires.
    fn collect(&self, blobs: &mut BTreeMap<Digest, Blob>) -> api::Digest {
        let files = self.files.iter().map(|(name, file)| {
            let content = file.content.clone();
            let blob = Blob { digest: file.digest, size: file.size, content };
            let digest = Some(blob.api());
            blobs.entry(blob.digest).or_insert(blob);
            api::FileNode {
                name: (*name).to_owned(),
                digest,
                is_executable: file.executable,
                ..Default::default()
            }
        });
        let files = files.collect();
        let directories = self.directories.iter().map(|(name, directory)| {
            let digest = Some(directory.collect(blobs));
            api::DirectoryNode { name: (*name).to_owned(), digest }
        });
        let directories = directories.collect();
        let blob = Blob::from_message(&api::Directory { files, directories, ..Default::default() });
        let digest = blob.api();
        blobs.entry(blob.digest).or_insert(blob);
        digest
    }
}

impl Tree {
    pub(crate) fn from_root(root: &InputRoot) -> Self {
        let mut top = Directory::default();
        for file in &root.files {
            let (dir, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            top.below(dir).files.insert(name, file);
        }
        for directory in &root.directories {
            top.below(directory);
        }
        let mut blobs = BTreeMap::new();
        let root = top.collect(&mut blobs);
        Self { root, blobs: blobs.into_values().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> InputFile {
        let bytes: &[u8] = text.as_bytes();
        InputFile {
            path: path.to_owned(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            executable: path.starts_with("bin/"),
            content: Content::Bytes(bytes.into()),
        }
    }

    #[test]
    fn directories_refer_to_their_entries() {
        let files = vec![file("src/k.cl", "k"), file("bin/clang", "c"), file("src/a/k.cl", "k")];
        let tree = Tree::from_root(&InputRoot::new(files, vec!["src/out".into()]));
        // Two contents, and the directories root, bin, src, src/a, src/out.
        assert_eq!(tree.blobs.len(), 2 + 5);
        let find = |digest: &api::Digest| {
            let blob = tree.blobs.iter().find(|blob| blob.digest.to_string() == digest.hash);
            let Content::Bytes(bytes) = &blob.unwrap().content else { panic!("a message") };
            api::Directory::decode(&bytes[..]).unwrap()
        };
        let root = find(&tree.root);
        let names: Vec<&str> = root.directories.iter().map(|dir| dir.name.as_str()).collect();
        assert_eq!(names, ["bin", "src"]);
        let bin = find(root.directories[0].digest.as_ref().unwrap());
        assert!(bin.files[0].is_executable && bin.files[0].name == "clang");
        let src = find(root.directories[1].digest.as_ref().unwrap());
        let names: Vec<&str> = src.directories.iter().map(|dir| dir.name.as_str()).collect();
        assert_eq!(names, ["a", "out"]);
        assert!(!src.files[0].is_executable);
    }
}
