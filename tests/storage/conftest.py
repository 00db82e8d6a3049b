import json
import zipfile

import pytest


@pytest.fixture
def rewrite():
    """Change the description and the parts of a saved file."""

    def change_file(path, change):
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        description = json.loads(parts["description.json"])
        change(description, parts)
        parts["description.json"] = json.dumps(description).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, content)

    return change_file
