"""Python that opens and writes files, by whatever objects and names it has for them."""

from __future__ import annotations

from tests.support.labelled import mislabelled

OPENED = {
    "read_only": [
        "from PIL import Image; im = Image.open('docs/a.png'); print(im.size)",
        "import fitz; print(len(fitz.open('paper.pdf')))",
        "from zipfile import ZipFile\nprint(ZipFile('x.docx').open('word/document.xml').read())",
        "z = zipfile.ZipFile('x.zip')\nz.open('a', 'r')",
        "import laspy; laspy.open('data/wax.las')",
        "import av; av.open('a.mp4')",
        "from smart_open import open as o; o('s3://bucket/wax')",
        "import smart_open; smart_open.open('src/wax.txt')",
        "import fsspec; fsspec.open('src/a.txt', 'rb')",
        "import dbm; dbm.open('a', 'r')",
        "import rasterio; rasterio.open('x+w.tif')",
        "import webbrowser; webbrowser.open('a', 'w')",
        "from pathlib import Path; Path('a').open()",
        "from pathlib import Path; Path('a').open('rb')",
        "from pathlib import Path; Path('a').open(mode='r')",
        "import tarfile; tarfile.open('wax.tar.xz', 'r:xz')",
        "import gzip; gzip.open('wax.gz')",
        "open('wax')",
        "open('src/a.py', 'rt', encoding='latin-1')",
    ],
    "file_edit": [
        "from pathlib import Path; Path('src/a.py').open('w')",
        "p = Path('src/a.py')\np.open('a+').write('x')",
        "for p in files:\n  p.open('w').write('x')",
        "Path('src/a.py').open('w', encoding='utf-8')",
        "Path('src/a.py').open('wb', 0)",
        "Path('src/a.py').open(mode='w')",
        "import codecs; codecs.open('src/a.py', 'w', 'utf-8')",
        "import smart_open; smart_open.open('src/a.py', 'w')",
        "import fsspec; fsspec.open('src/a.py', mode='w')",
        "import io; io.open('src/a.py', 'w')",
        "import os; os.open('src/a.py', os.O_WRONLY | os.O_CREAT)",
    ],
    "file_write_other": [
        "import tarfile; tarfile.open('a.tar.gz', 'w:gz')",
        "import gzip; gzip.open('a.gz', 'wb')",
    ],
}


def test_the_mode_decides_about_an_opened_file() -> None:
    assert _mislabelled(OPENED) == []


def _mislabelled(table: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    return mislabelled(
        {
            label: [f"python3 - <<'E'\n{code}\nE" for code in scripts]
            for label, scripts in table.items()
        }
    )
