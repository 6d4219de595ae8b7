//! The page of a repository.

use crate::lab::{KEY, Lab};

#[test]
fn a_page_shows_what_the_repository_has_and_how_to_use_it() {
    let lab = Lab::new();
    lab.dist("repository", &["--target", "gfx906,gfx90a@104"]);
    let args = ["--sign-key", KEY, "--origin", "Kernels & more", "--url", "https://example.org/k/"];
    lab.run(&[&["repo", "repository"], &args[..]].concat()).expect_code(0);
    let dom = std::fs::read_to_string(lab.path("repository/index.html")).expect("written");
    for expected in [
        "<h1>Kernels &amp; more</h1>",
        "sudo curl --fail --output /etc/apt/sources.list.d/kernels-more.sources \
         https://example.org/k/kernels-more.sources",
        "sudo curl --fail --output /etc/yum.repos.d/kernels-more.repo",
        "sudo apt update &amp;&amp; sudo apt install miopen-hip-gfx90",
        "<b>miopen-hip-gfx90a-104kdb</b>",
        "<small>for gfx90a@104: Instinct MI210",
        "href=\"./miopen-hip-gfx906kdb_1.2.3-1_all.deb\">.deb</a>",
        "href=\"./miopen-hip-gfx906kdb-1.2.3-1.noarch.rpm\">.rpm</a>",
    ] {
        assert!(dom.contains(expected), "{expected}: {dom}");
    }
    assert!(!dom.contains("not signed"), "{dom}");
    for file in ["kernels-more.sources", "kernels-more.repo"] {
        let text = std::fs::read_to_string(lab.path("repository").join(file)).expect("written");
        assert!(text.contains("https://example.org/k\n"), "{text}");
    }
    lab.run(&["repo", "repository", "--url", "example.org"]).expect_code(2);
}
