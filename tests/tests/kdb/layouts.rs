//! Both layouts, and files with origins, give MIOpen's queries the same answers.

use std::path::Path;

use gfxpack_kdb::{Blob, Layout};
use gfxpack_model::KernelKey;

use crate::judges::python;
use crate::support::{
    command, key, run, shared, write_kernels, write_laid_out, write_with_origins,
};

/// MIOpen's own check and query, as its sources have them: every column of
/// `KernelConfig::FieldNames` must be among the names that table_info gives,
/// whatever their types, keys and constraints; the key is spliced in.
///
/// Source: ROCm/MIOpen 2d1fd997a, `SQLite::impl::CreateFileDb`,
/// `SQLiteBase::CheckTableColumns`, `KernDb::FindRecordUnsafe`.
const ASK_AS_MIOPEN: &str = r#"
import bz2, hashlib, os, pathlib, sqlite3, sys
path = pathlib.Path(sys.argv[1])
assert os.path.getsize(path) >= 512, 'MIOpen: absent'
db = sqlite3.connect(path.as_uri() + '?mode=ro', uri=True)
cursor = db.execute('PRAGMA table_info(kern_db);')
at = [column[0] for column in cursor.description].index('name')
names = [row[at] for row in cursor]
for golden in ['kernel_name', 'kernel_args', 'kernel_blob']:
    assert golden in names, f'MIOpen: Invalid fields in table: kern_db: {golden}'
def find(name, args):
    query = ("SELECT kernel_blob, kernel_hash, uncompressed_size FROM kern_db WHERE "
             f"(kernel_name = '{name}') AND (kernel_args = '{args}');")
    row = db.execute(query).fetchone()
    if row is None:
        return None
    blob, md5, size = row
    assert type(blob) is bytes and type(md5) is str and type(size) is int
    if size != 0:
        blob = bz2.decompress(blob)
        assert len(blob) == size
    assert hashlib.md5(blob).hexdigest() == md5, 'MIOpen: Possible database corruption'
    return blob
for line in open(sys.argv[2]):
    name, args = (bytes.fromhex(part).decode() for part in line.rstrip('\n').split(','))
    found = find(name, args)
    print('-' if found is None else hashlib.sha256(found).hexdigest())
"#;

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What MIOpen would get for each key, a line each.
fn miopen_answers(kdb: &Path, keys: &[KernelKey]) -> String {
    let list = tempfile::NamedTempFile::new().unwrap();
    let lines: String = keys
        .iter()
        .map(|key| format!("{},{}\n", hex(&key.kernel_name), hex(&key.kernel_args)))
        .collect();
    std::fs::write(list.path(), lines).unwrap();
    python(ASK_AS_MIOPEN, &[kdb, list.path()])
}

#[test]
fn both_layouts_answer_miopen_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (plain, dense) =
        (directory.path().join("gfx906_60.kdb"), directory.path().join("gfx906.kdb"));
    for blob in [Blob::Smaller, Blob::Raw] {
        let kernels = shared();
        write_laid_out(&plain, &kernels, blob, Layout::Miopen);
        write_laid_out(&dense, &kernels, blob, Layout::Dense);
        let mut keys: Vec<KernelKey> = kernels.iter().map(|(key, _)| key.clone()).collect();
        for (name, args) in [("", ""), ("conv.s.o", "-mcpu=gfx906"), ("CONV.S.O", " -mcpu=gfx906")]
        {
            keys.push(key(name, args));
        }
        let answers = miopen_answers(&plain, &keys);
        assert_eq!(answers.lines().filter(|line| *line != "-").count(), kernels.len());
        assert_eq!(miopen_answers(&dense, &keys), answers);

        // The shell prints the rows as anybody's SQL sees them.
        let sql = "SELECT kernel_name, kernel_args, hex(kernel_blob), kernel_hash, \
                   uncompressed_size FROM kern_db ORDER BY 1, 2";
        let shell = [&plain, &dense].map(|path| {
            let output = run(command("sqlite3").arg("-readonly").arg(path).arg(sql));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        });
        assert_eq!(shell[0], shell[1]);
        assert!(shell[0].len() > 1000);
    }
}

/// A file that says where its kernels come from has tables that MIOpen does not
/// know.
#[test]
fn tables_of_origins_do_not_affect_lookups() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let kernels = shared();
    write_kernels(&path("plain.kdb"), &kernels, Blob::Smaller);
    write_with_origins(&path("miopen.kdb"), &kernels, Layout::Miopen);
    write_with_origins(&path("dense.kdb"), &kernels, Layout::Dense);
    let keys: Vec<KernelKey> = kernels.iter().map(|(key, _)| key.clone()).collect();
    let answers = miopen_answers(&path("plain.kdb"), &keys);
    for name in ["miopen.kdb", "dense.kdb"] {
        assert_eq!(miopen_answers(&path(name), &keys), answers, "{name}");
    }
}
