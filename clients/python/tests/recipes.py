"""Type-checks and runs the recipes of the README with an installed client. Prints what they print.

Arguments: a folder where tidemark_client is installed. Other requirements: mypy.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1])
# Each must not pass the check.
WRONG = [
    'client.get("/account")',
    'client.get("/accounts/{account_id}")',
    'client.get("/accounts", {"platform": "myspace"})',
    'client.get("/events/stream")',
    'client.post("/accounts", body={"platform": "tiktok"})',
    'client.get("/meta")["data"]["absent"]',
    'client.list("/overview")',
    'client.export("/accounts")',
]

page = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
recipes = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
files = [folder / f"recipe_{number}.py" for number in range(1, len(recipes) + 1)]
for file, recipe in zip(files, recipes, strict=True):
    file.write_text(recipe, encoding="utf-8")
wrong = folder / "wrong.py"
wrong.write_text("\n".join(["from tidemark_client import Tidemark", "client = Tidemark()", *WRONG]), encoding="utf-8")


def check(*paths: Path) -> str:
    arguments = ["--strict", "--no-incremental", "--no-error-summary", *map(str, paths)]
    checked = subprocess.run([sys.executable, "-m", "mypy", *arguments], cwd=folder, capture_output=True, text=True)
    return checked.stdout + checked.stderr


found = check(*files, wrong)
lines = {int(number) for number in re.findall(r"^wrong\.py:(\d+): error", found, re.MULTILINE)}
missing = [line for number, line in enumerate(WRONG, 3) if number not in lines]
unexpected = [line for line in found.splitlines() if not line.startswith("wrong.py:")]
if missing or unexpected:
    sys.exit("\n".join([*unexpected, *(f"passes the check: {line}" for line in missing)]))

os.chdir(folder)
sys.path.insert(0, str(folder))
for number, (file, recipe) in enumerate(zip(files, recipes, strict=True), 1):
    print(f"recipe {number}", flush=True)
    exec(compile(recipe, file, "exec"), {"__name__": "__main__"})
