# Unpacks a package's untrusted archive into a folder: python unpack.py ARCHIVE FOLDER BYTES.
# Writes only regular files, only below the folder, and at most BYTES bytes in total.
import os
import stat
import sys
import tarfile
import zipfile
import zlib

MOST_ENTRIES = 200_000


def entries_of_wheel(archive):
    with zipfile.ZipFile(archive) as wheel:
        for entry in wheel.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)
            is_file = kind in (0, stat.S_IFREG)
            yield entry.filename, entry.is_dir(), is_file, lambda: wheel.open(entry)


def entries_of_crate(archive):
    with tarfile.open(archive, "r|gz") as crate:
        for entry in crate:
            yield entry.name, entry.isdir(), entry.isreg(), lambda: crate.extractfile(entry)


def unpack(archive, folder, left):
    entries = entries_of_wheel if archive.endswith(".whl") else entries_of_crate
    for number, (name, is_folder, is_file, open_entry) in enumerate(entries(archive)):
        parts = name.rstrip("/").split("/")
        if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
            sys.exit(f"{name!a} leads out of the package")
        if number == MOST_ENTRIES:
            sys.exit(f"it has more than {MOST_ENTRIES} entries")
        if is_folder:
            continue
        if not is_file:
            sys.exit(f"{name!a} is a link or a device, not a file")
        path = os.path.join(folder, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open_entry() as content, open(path, "xb") as file:
            while chunk := content.read(1 << 16):
                left -= len(chunk)
                if left < 0:
                    sys.exit("it unpacks to more than is allowed")
                file.write(chunk)
        os.chmod(path, 0o444)


try:
    unpack(sys.argv[1], sys.argv[2], int(sys.argv[3]))
except (OSError, EOFError, ValueError, RuntimeError, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
    sys.exit(str(error))
