"""A kdb row by row, as a plain script writes one (MITuna's export does it so).

plain.py KDB ROWS OUT bz2|raw: prints seconds, bytes and peak memory as JSON.
"""
import bz2, hashlib, json, os, resource, sqlite3, sys, time

source, count, out, raw = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "raw"
known = []
for args, blob, size in sqlite3.connect(source).execute(
    "SELECT kernel_args, kernel_blob, uncompressed_size FROM kern_db ORDER BY kernel_name, kernel_args"
):
    known.append((args, bz2.decompress(blob) if size else blob))
if os.path.exists(out):
    os.remove(out)
started = time.monotonic()
connection = sqlite3.connect(out)
cursor = connection.cursor()
cursor.execute(
    "CREATE TABLE `kern_db` (`id` INTEGER PRIMARY KEY ASC,`kernel_name` TEXT NOT NULL,"
    "`kernel_args` TEXT NOT NULL,`kernel_blob` BLOB NOT NULL,`kernel_hash` TEXT NOT NULL,"
    "`uncompressed_size` INT NOT NULL)"
)
cursor.execute("CREATE UNIQUE INDEX `idx_kern_db` ON `kern_db` (`kernel_name`, `kernel_args`)")
for row in range(count):
    args, code = known[row % len(known)]
    code += row.to_bytes(8, "little")
    blob, size = (code, 0) if raw else (bz2.compress(code), len(code))
    cursor.execute(
        "INSERT INTO kern_db (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size)"
        " VALUES (?, ?, ?, ?, ?)",
        (f"row{row:06}.cl.o", args, blob, hashlib.md5(code).hexdigest(), size),
    )
connection.commit()
connection.close()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": time.monotonic() - started, "bytes": os.path.getsize(out), "peak_kib": peak}))
