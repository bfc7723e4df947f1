#!/usr/bin/env python3
"""Checks the dependencies of the crates.

    scripts/check-dependencies.py

It checks that

* crates that read runs do not link the code that computes them,
* our crates use each other as docs/dev/architecture.md says,
* licences, crates and sources satisfy deny.toml,
* each dependency is used, and built once for program and tests,
* no dependency has a known vulnerability.

This script applies deny.toml to the output of cargo, because cargo-deny takes minutes to build. Only the check of
vulnerabilities needs cargo-deny, and their list is on GitHub. If GitHub is reachable and cargo-deny is not on PATH, the
script installs it into target/tools.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
READERS = ["server", "explorer", "stats", "export", "report", "players"]
COMPUTES = {"exact2048-worker", "exact2048-coordinator", "exact2048-run", "exact2048-cluster"}
# These crates need different features in the tests, which the shipped program should not have.
BUILT_TWICE = {"matchers", "regex-automata", "regex-syntax", "tracing-subscriber"}
CARGO_DENY = "0.20.2"
ADVISORIES = "https://github.com/RustSec/advisory-db"


def cargo(*args):
    return subprocess.run(["cargo", *args], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates(targets, edges):
    """The built crates: name, version, source if it is not crates.io, and licence of each."""
    found = set()
    platforms = [f"--target={target}" for target in targets]
    tree = cargo("tree", "--locked", "--workspace", "--all-features", *platforms, "--edges", edges,
                 "--prefix", "none", "--format", "{p}\t{l}")
    for line in filter(None, tree.splitlines()):
        crate, licence = line.removesuffix(" (*)").split("\t")
        name, version, *rest = crate.removesuffix(" (proc-macro)").split(" ", 2)
        found.add((name, version, "".join(rest).strip("()"), licence))
    return found


def allows(expression, allowed):
    """Whether the allowed licences satisfy a licence expression (SPDX, or with / for OR)."""
    words = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.-]+)?", expression.replace("/", " OR "))
    known = {"(": "(", ")": ")", "AND": "and", "OR": "or"}
    return bool(eval(" ".join(known.get(word) or str(word in allowed) for word in words) or "False"))


def wrong(built, shipped, required, rules):
    """Violations of deny.toml. Licences matter only for shipped crates, not for dependencies of the tests."""
    allowed, denied = rules["licenses"]["allow"], [crate["name"] for crate in rules["bans"]["deny"]]
    for name, version, source, licence in sorted(built):
        ours = source.startswith("/")
        if source and not ours:
            yield f"{name} {version} comes from {source}"
        if name in denied:
            yield f"{name} {version} is denied"
        if (name, version, source, licence) in shipped and not ours and not allows(licence, allowed):
            yield f"{name} {version} has the licence {licence or 'of an unknown name'}"
    for dependency in required:
        if dependency["req"] == "*" and not dependency.get("path"):
            yield f"any version of {dependency['name']} is allowed"


def check_the_check(rules):
    """Requires that violations are found, and that deny.toml has no rules unknown to this script."""
    assert rules["licenses"].keys() == {"allow", "private"}, rules["licenses"]
    assert rules["advisories"] == {"yanked": "deny"}, rules["advisories"]
    assert rules["sources"] == {"unknown-registry": "deny", "unknown-git": "deny"}, rules["sources"]
    assert rules["bans"].keys() == {"multiple-versions", "wildcards", "allow-wildcard-paths", "deny"}, rules["bans"]
    bad = {
        ("ours", "v1", "/ours", ""),
        ("right", "v1", "", "(MIT OR GPL-3.0) AND Apache-2.0 WITH LLVM-exception"),
        ("git", "v1", "https://example.org/git#1", "MIT/GPL-3.0"),
        ("licence", "v1", "", "MIT AND GPL-3.0"),
        ("none", "v1", "", ""),
        ("openssl-sys", "v1", "", "MIT"),
    }
    errors = [error.split()[0] for error in wrong(bad, bad, [{"name": "x", "req": "*"}], rules)]
    assert errors == ["git", "licence", "none", "openssl-sys", "any"], f"found {errors} in an example"


def unused(package):
    """Dependencies that no code of the package names, except the unnamed ones that its Cargo.toml lists."""
    files = set()
    for target in package["targets"]:
        path = pathlib.Path(target["src_path"])
        # A target owns all files in its folder, except that build.rs owns only itself.
        files |= {path} if path.parent == pathlib.Path(package["manifest_path"]).parent else set(path.parent.rglob("*.rs"))
    code = "\n".join(path.read_text() for path in files)
    needed = (package["metadata"] or {}).get("unnamed-dependencies", [])
    for dependency in package["dependencies"]:
        name = dependency["rename"] or dependency["name"]
        if name not in needed and not re.search(rf"(?<![\w:]){name.replace('-', '_')}(::|;| as\b)", code):
            yield f"{package['name']} does not use {name}"


def differs(package, rows):
    """Differences between the used crates of a package and those in docs/dev/architecture.md."""
    folder = package["manifest_path"].removeprefix(f"{ROOT}/").removesuffix("/Cargo.toml")
    if "/" in folder or rows.get(folder) == "all above":
        return
    ours = {dependency["name"].removeprefix("exact2048-") for dependency in package["dependencies"]
            if dependency["kind"] is None and dependency.get("path")}
    said = set(re.findall("`(\\w+)`", rows[folder])) if folder in rows else None
    if ours != said:
        yield f"{folder} uses {sorted(ours)}, and docs/dev/architecture.md says {said and sorted(said)}"


def units(*args):
    """The packages that a cargo command builds, by everything that decides whether an earlier build is reused."""
    # The unit graph is unstable, but cargo offers nothing else.
    graph = json.loads(subprocess.run(
        ["cargo", *args, "--locked", "--unit-graph", "-Zunstable-options"], cwd=ROOT, check=True, stdout=subprocess.PIPE,
        text=True, env=os.environ | {"RUSTC_BOOTSTRAP": "1"}).stdout)["units"]
    known = {}

    def key(number):
        if number not in known:
            unit = graph[number]
            profile = sorted((name, str(value)) for name, value in unit["profile"].items() if name != "name")
            known[number] = hash((unit["pkg_id"], str(unit["target"]), unit["mode"], unit["platform"], *unit["features"],
                                  *profile, *sorted(key(dependency["index"]) for dependency in unit["dependencies"])))
        return known[number]

    return {key(number): unit["pkg_id"] for number, unit in enumerate(graph)}


def built_twice():
    """Third-party crates that `cargo build` builds again after `cargo test --workspace`, with other features."""
    tests = units("test", "--workspace")
    again = {package.split("#")[-1].split("@")[0] for unit, package in units("build").items()
             if unit not in tests and package.startswith("registry")}
    for name in sorted(again ^ BUILT_TWICE):
        yield (f"{name} is built twice, with other features for the tests: enable them in cli/Cargo.toml"
               if name in again else f"{name} is no longer built twice: remove it from BUILT_TWICE")


def vulnerabilities():
    """Checks the list of vulnerabilities on GitHub, if it is reachable."""
    if subprocess.run(["git", "ls-remote", "--quiet", ADVISORIES, "HEAD"], stdout=subprocess.DEVNULL).returncode:
        print("warning: vulnerabilities were not checked, because their list cannot be fetched", file=sys.stderr)
        return
    tools = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "tools"
    os.environ["PATH"] += f":{tools}/bin"
    # Not optimised, because it runs only for seconds.
    os.environ |= {"CARGO_PROFILE_RELEASE_OPT_LEVEL": "0", "CARGO_PROFILE_RELEASE_LTO": "false"}
    if subprocess.run(["cargo", "deny", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        cargo("install", "--quiet", "--locked", "--root", tools, "--target-dir", tools / "build", f"cargo-deny@{CARGO_DENY}")
    cargo("deny", "--log-level", "error", "check", "advisories", "licenses", "bans", "sources", "--allow", "duplicate")


def main():
    errors = []
    for reader in READERS:
        tree = cargo("tree", "--locked", "--package", f"exact2048-{reader}", "--edges", "normal,build", "--prefix", "none")
        errors += [f"exact2048-{reader} reads runs and must not link the code that computes them: {crate}"
                   for crate in sorted(COMPUTES & {line.split(" ")[0] for line in tree.splitlines()})]
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    check_the_check(rules)
    targets = rules["graph"]["targets"]
    packages = []
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"]:
        packages += json.loads(cargo("metadata", f"--manifest-path={manifest}", "--no-deps", "--format-version=1"))["packages"]
    required = [dependency for package in packages for dependency in package["dependencies"]]
    built = crates(targets, "normal,build,dev")
    errors += wrong(built, crates(targets, "normal,build"), required, rules)
    errors += [error for package in packages for error in unused(package)]
    table = (ROOT / "docs/dev/architecture.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)/` \|.*\| (.*) \|$", table, re.MULTILINE))
    errors += [error for package in packages for error in differs(package, rows)]
    errors += built_twice()
    if errors:
        sys.exit("\n".join(f"error: {error}" for error in errors))
    print(f"{len(built)} packages satisfy deny.toml, and each dependency is used and built once.")
    vulnerabilities()


if __name__ == "__main__":
    main()
