"""kdbs as a plain script has them, for `cargo xtask bench`.

kdb.py verify KDB: decodes and hashes each row.
kdb.py enlarge KDB OUT ROWS: as many raw rows, each another object by its last bytes.
"""
import bz2, hashlib, sqlite3, sys


def rows(path):
    select = "SELECT kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size FROM kern_db"
    for name, args, blob, md5, size in sqlite3.connect(path).execute(select):
        yield name, args, bz2.decompress(blob) if size else blob, md5


def digest(code):
    return hashlib.md5(code).hexdigest()


def enlarge(path, out, count):
    known = list(rows(path))
    kdb = sqlite3.connect(out)
    kdb.execute(
        "CREATE TABLE `kern_db` (`id` INTEGER PRIMARY KEY ASC,`kernel_name` TEXT NOT NULL,"
        "`kernel_args` TEXT NOT NULL,`kernel_blob` BLOB NOT NULL,`kernel_hash` TEXT NOT NULL,"
        "`uncompressed_size` INT NOT NULL)"
    )
    kdb.execute("CREATE UNIQUE INDEX `idx_kern_db` ON `kern_db` (`kernel_name`, `kernel_args`)")
    insert = "INSERT INTO kern_db (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size)"
    for row in range(count):
        name, args, code, _ = known[row % len(known)]
        code += row.to_bytes(8, "little")
        kdb.execute(insert + " VALUES (?, ?, ?, ?, 0)", (f"{row:06}{name}", args, code, digest(code)))
    kdb.commit()


if sys.argv[1] == "verify":
    assert all(digest(code) == md5 for _, _, code, md5 in rows(sys.argv[2]))
else:
    enlarge(sys.argv[2], sys.argv[3], int(sys.argv[4]))
