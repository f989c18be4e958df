"""Changes bytes of a release's folder, one at a time, and prints each that release.py does not find.

usage: changed_bytes.py DIR PUBLIC_KEY POSITIONS

In each file POSITIONS bytes are changed, the first and the last among them. The last line is the number of changes.
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "image"))
import release  # noqa: E402

folder, key, positions = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
chance = random.Random(1)
count = 0
for path in release.files_below(folder):
    file = folder / path
    content = file.read_bytes()
    chosen = {0, len(content) - 1, *(chance.randrange(len(content)) for _ in range(positions - 2))}
    for position in sorted(chosen):
        changed = bytearray(content)
        changed[position] ^= 1 << chance.randrange(8)
        file.write_bytes(changed)
        count += 1
        try:
            if not release.problems(folder, key):
                print(f"{path}, byte {position}: {content[position]:#x} is {changed[position]:#x}")
        except Exception as error:  # noqa: BLE001
            print(f"{path}, byte {position}: {type(error).__name__}: {error}")
    file.write_bytes(content)
print(count)
