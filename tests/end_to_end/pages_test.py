"""The pages can be read and followed: short, narrow, linked, reached from one front door; the page of commands is true."""
import re
import unittest

import harness
import pages

README_WORDS_MAX, CELL_WORDS_MAX, COLUMNS_MAX = 1200, 40, 160
FOLDERS = ("common", "kernels", "embedding", "server", "worker", "scheduler", "tools", "tests", "benchmarks",
           "examples", "docs")
# What programs write into pages, as long as it is.
WRITTEN = re.compile(r"<!-- (?:result|gpu): begin -->.*?<!-- (?:result|gpu): end -->", re.S)


def all_pages():
    roots = sorted(harness.ROOT.glob("*.md"))
    return roots + sorted(page for folder in FOLDERS for page in (harness.ROOT / folder).rglob("*.md"))


def name_of(page):
    return str(page.relative_to(harness.ROOT))


def blank(match):
    return "\n" * match[0].count("\n")


def prose(page):
    """The page's lines; those of code and of what programs write are empty."""
    text = WRITTEN.sub(blank, page.read_text())
    return re.sub(r"^```.*?^```", blank, text, flags=re.S | re.M).split("\n")


def links(page):
    return re.findall(r"\]\((?!https?:)([^)\s]+)\)", "\n".join(prose(page)))


def anchor(heading):
    """As GitHub makes it of a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"[`*]", "", heading.strip())).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page):
    return {anchor(line.lstrip("#")) for line in prose(page) if re.match(r"#+ ", line)}


def too_long(line):
    """Why a line is too long to be read; None where it is not. Only addresses may make a row longer."""
    shown = re.sub(r"\]\([^)]*\)", "]", line) if line.startswith("|") else line
    if len(shown) > COLUMNS_MAX:
        return f"{len(shown)} columns"
    if line.startswith("|"):
        words = max(len(cell.split()) for cell in re.split(r"(?<!\\)\|", line))
        if words > CELL_WORDS_MAX:
            return f"a cell of {words} words"
    return None


class Pages(unittest.TestCase):
    def test_readme_is_short(self):
        self.assertLessEqual(len(pages.README.read_text().split()), README_WORDS_MAX)

    def test_lines_and_cells(self):
        found = []
        for page in (pages.README, harness.ROOT / "SECURITY.md", *sorted(pages.DOCS.rglob("*.md"))):
            for n, line in enumerate(prose(page), 1):
                if too_long(line):
                    found.append(f"{name_of(page)}:{n}: {too_long(line)}")
        self.assertEqual(found, [])

    def test_what_is_too_long(self):
        self.assertIsNone(too_long("| " + "x" * 150 + " | [a](" + "y" * 50 + ") |"))
        self.assertIsNone(too_long("x" * COLUMNS_MAX))
        self.assertEqual(too_long("x" * 161), "161 columns")
        self.assertEqual(too_long("| " + "a " * 41 + "|"), "a cell of 41 words")

    def test_links(self):
        """Each leads to a file, and where it names a heading, to one that is there."""
        dead = []
        for page in all_pages():
            for target in links(page):
                file, _, heading = target.partition("#")
                to = page.parent / file if file else page
                if not to.exists():
                    dead.append(f"{name_of(page)}: {target}")
                elif heading and to.suffix == ".md" and heading not in anchors(to):
                    dead.append(f"{name_of(page)}: {target}: no such heading")
        self.assertEqual(dead, [])

    def test_front_door(self):
        """docs/README.md has four headings and names every page; that of the records names every record."""
        door, records = pages.DOCS / "README.md", pages.RECORDS / "README.md"
        headings = [line[3:] for line in prose(door) if line.startswith("## ")]
        self.assertEqual(headings, ["Start", "How to", "Reference", "How it works"])
        for page, of in ((door, pages.for_users()[1:]), (records, pages.RECORDS.rglob("*.md"))):
            named = {(page.parent / target.partition("#")[0]).resolve() for target in links(page)}
            left_out = [name_of(one) for one in of if one != page and one.resolve() not in named]
            self.assertEqual(left_out, [], f"{name_of(page)} does not name them")
        self.assertIn(records.resolve(), {(door.parent / target).resolve() for target in links(door)})

    def test_pages_speak_of_the_program(self):
        """Pages for users say what is: nobody in them says "we"."""
        said = [f"{name_of(page)}:{n}: {line.strip()}" for page in pages.for_users()
                for n, line in enumerate(prose(page), 1) if re.search(r"\b[Ww]e\b", line)]
        self.assertEqual(said, [])

    def test_commands(self):
        """docs/commands.md is what the programs say."""
        harness.run([harness.ROOT / "scripts" / "dev" / "commands_docs.py", f"--bin={harness.BIN}", "--check"])


if __name__ == "__main__":
    harness.main()
