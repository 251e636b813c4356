"""Files that a test writes by their names as keywords."""

from __future__ import annotations


def file_writer(tmp_path):
    """Return a function that writes files: `a__b_dot_csv="text"` is the file b.csv of folder a."""

    def write(**files):
        for name, content in files.items():
            path = tmp_path.joinpath(*name.replace("_dot_", ".").split("__"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write
