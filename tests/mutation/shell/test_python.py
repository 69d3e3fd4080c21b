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

OBJECTS = {
    "file_edit": [
        "import xml.etree.ElementTree as ET\nt = ET.parse('pom.xml')\nt.write('pom.xml')",
        "from lxml import etree\ntree = etree.parse('pom.xml')\ntree.write('pom.xml', pretty_print=True)",  # noqa: E501
        "import xml.etree.ElementTree as ET\nET.ElementTree(root).write('pom.xml')",
        "from ruamel.yaml import YAML\nYAML().dump({}, Path('a.yml'))",
        "from ruamel.yaml import YAML\nfrom pathlib import Path\np = Path('a.yml')\ny = YAML()\ny.dump(y.load(p), p)",  # noqa: E501
        "form.save('src/a.svg')",
        "out = 'src/a.py'\nproject.save(out)",
        "from distutils.dir_util import copy_tree; copy_tree('a', 'src')",
        "from dotenv import set_key; set_key('.env', 'A', '1')",
        "import black\nblack.format_file_in_place(Path('a.py'), False, black.Mode(), write_back=black.WriteBack.YES)",  # noqa: E501
        "import io; io.FileIO('a.py', 'w')",
        "from pathlib import Path as P\nw = P('a.py').write_text\nw('x')",
        "f = open\nf('a.py', 'w')",
        "import os\nremove = os.remove\nremove('a.py')",
        "open(*('a.py', 'w'))",
        "import sh; sh.sed('-i', 's/a/b/', 'a.py')",
        "from sh import rm; rm('a.py')",
        "from plumbum.cmd import rm; rm('a.py')",
    ],
    "file_write_other": [
        "from openpyxl import load_workbook\nwb = load_workbook('a.xlsx')\nwb.save('a.xlsx')",
        "from docx import Document\nd = Document('a.docx')\nd.save('a.docx')",
        "from PIL import Image\nim = Image.open('assets/logo.png')\nim.save('assets/logo2.png')",
        "import polars as pl\npl.read_csv('a.csv').write_csv('src/b.csv')",
    ],
    "scratch_write": [
        "import os, tempfile\nwith tempfile.TemporaryDirectory() as d:\n  p = os.path.join(d, 'src', 'a.py')\n  os.makedirs(os.path.dirname(p))\n  open(p, 'w')",  # noqa: E501
    ],
    "unknown": ["cache.save('user.name')", "open('a.py', **kw)", "open(*given)"],
    "read_only": [
        "import sys; sys.stdout.write('a.py')",
        "import sys; w = sys.stdout.write; w('a.py')",
        "def show(f):\n  f.write('a.py')",
        "f.write('text')",
        "sock.write('a.py')",
        "response.write('index.html')",
        "import xml.etree.ElementTree as ET\nET.parse('pom.xml').write(sys.stdout)",
        "form.save()",
        "users.save('user@example.com')",
        "client.save('http://a.com/x.html')",
        "import zipfile; z = zipfile.ZipFile('a.zip', 'a'); z.write('src/a.py')",
        "user.save(commit=False)",
        "import io\nb = io.BytesIO()\nim.save(b, format='PNG')",
        "im.save(b, 'x.png')",
        "cache.save('the text')",
        "import json, sys; json.dump({}, sys.stdout)",
        "from ruamel.yaml import YAML\nYAML().dump({}, sys.stdout)",
        "import json; print(json.dumps({'a': 'b.py'}))",
        "df.write_csv()",
        "import black; black.format_file_in_place(Path('a.py'), False, black.Mode())",
        "import sh; print(sh.ls('-l'))",
        "sh.rm('a.py')",
        "open(*('a.py', 'r'))",
        "f = open\nf('wax')",
        "f = open\nf = print\nf('a.py', 'w')",
    ],
}


def test_the_mode_decides_about_an_opened_file() -> None:
    assert _mislabelled(OPENED) == []


def test_writes_by_objects_and_other_names_have_their_label() -> None:
    assert _mislabelled(OBJECTS) == []


def _mislabelled(table: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    return mislabelled(
        {
            label: [f"python3 - <<'E'\n{code}\nE" for code in scripts]
            for label, scripts in table.items()
        }
    )
