"""Points links that lead out of docs/ at the repository, where those files are read."""

import posixpath
import re

LINK = re.compile(r"(\]\()([^)#:\s]+)([^)]*\))")


def on_page_markdown(markdown, page, config, files):
    folder = posixpath.dirname(page.file.src_uri)

    def point(found):
        target = posixpath.normpath(posixpath.join("docs", folder, found[2]))
        inside = posixpath.relpath(target, "docs")
        if not inside.startswith("..") and files.get_file_from_path(inside):
            return found[0]
        kind = "blob" if posixpath.splitext(target)[1] else "tree"
        return f"{found[1]}{config.extra['repository']}/{kind}/main/{target}{found[3]}"

    return LINK.sub(point, markdown)
