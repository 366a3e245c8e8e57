"""Print as JSON the options that a Python script reads, without running it: python -I - SCRIPT

It looks at calls of add_argument (argparse), options of click and typer, and fields of dataclasses.
"""

import ast
import json
import pathlib
import sys

KINDS = {"int": "int", "float": "float", "bool": "bool", "str": "text"}


def literal(node):
    """The value that the code writes, or None where it computes one."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def last(node):
    """The last part of a dotted name: Option of typer.Option."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def option(name, default, kind="", choices=None, line=0, flag=""):
    """One option; without a kind, that of its default. The flag takes a value on the command line."""
    if isinstance(default, (list, tuple, dict, set, bytes, complex)):
        default = None
    if not kind and default is not None:
        kind = {bool: "bool", int: "int", float: "float"}.get(type(default), "text")
    if kind == "float" and isinstance(default, int):
        default = float(default)
    choices = [c for c in choices or [] if isinstance(c, (str, int, float, bool))]
    return {"name": name, "kind": kind or "text", "default": default, "choices": choices, "line": line, "flag": flag}


def declared(names):
    """A command line's option in its longest form; empty: it has none."""
    return max((n for n in names if isinstance(n, str) and n.startswith("-")), key=len, default="")


def of_call(call):
    """The option of add_argument(...) or click.option(...), or None."""
    given = {k.arg: k.value for k in call.keywords if k.arg}
    names = [literal(a) for a in call.args]
    plain = [n for n in names if isinstance(n, str) and n.isidentifier()]  # click's name of the parameter
    flag = declared(names)
    name = literal(given.get("dest")) or (plain[0] if plain else flag.split("/")[0].lstrip("-").replace("-", "_"))
    if not name or not flag:
        return None
    action = literal(given.get("action")) or last(given.get("action"))
    kind, choices = KINDS.get(last(given.get("type")), ""), literal(given.get("choices"))
    default = literal(given.get("default"))
    if isinstance(given.get("type"), ast.Call):  # click.Choice, click.FloatRange
        made = given["type"]
        kind = {"FloatRange": "float", "IntRange": "int"}.get(last(made.func), kind)
        if last(made.func) == "Choice" and made.args:
            choices = literal(made.args[0])
    if action in ("store_true", "store_false", "BooleanOptionalAction") or literal(given.get("is_flag")):
        kind, default = "bool", default if isinstance(default, bool) else action == "store_false"
    flag = "" if kind == "bool" or "/" in flag else flag  # a switch; type=bool takes every text for True
    return option(name, default, kind, choices, call.lineno, flag if flag.startswith("--") else "")


def of_annotation(name, annotation, value, enums, line, typer):
    """The option of a parameter of typer, or of a field, with a type and a default."""
    flag = "--" + name.replace("_", "-") if typer else "--" + name
    while isinstance(annotation, ast.Subscript) and last(annotation.value) in ("Annotated", "Optional"):
        inner = annotation.slice
        annotation = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
    if isinstance(value, ast.Call):  # typer.Option(0.1), field(default=0.1)
        named = {k.arg: k.value for k in value.keywords}
        flag = declared([literal(a) for a in value.args]) or flag
        value = named.get("default") or (value.args[0] if value.args else None)
    default, choices, kind = literal(value), None, KINDS.get(last(annotation), "")
    if isinstance(annotation, ast.Subscript) and last(annotation.value) == "Literal":
        choices = literal(annotation.slice)
        choices = list(choices) if isinstance(choices, tuple) else [choices]
    if last(annotation) in enums:
        members = enums[last(annotation)]
        choices, default, kind = list(members.values()), members.get(last(value)), "text"
    made = option(name, default, kind, choices, line, flag)
    return {**made, "flag": ""} if typer and made["kind"] == "bool" else made  # a switch


def is_command(function):
    """Whether typer makes a command of the function."""
    return any(isinstance(d, ast.Call) and last(d.func) in ("command", "callback") for d in function.decorator_list)


def look(tree):
    """All options, libraries and names of the module."""
    enums, options, libraries, words, started, clicked = {}, [], set(), set(), set(), False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            libraries.update(a.name.split(".")[0] for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            libraries.add(node.module.split(".")[0])
        elif isinstance(node, ast.ClassDef) and any("Enum" in last(b) for b in node.bases):
            enums[node.name] = {
                last(s.targets[0]): literal(s.value) for s in node.body if isinstance(s, ast.Assign) and s.targets
            }
        elif isinstance(node, ast.Call) and last(node.func) == "run" and node.args:
            started.add(last(node.args[0]))  # typer.run(main)
        elif isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last(node.func) in ("add_argument", "option"):
            clicked = clicked or last(node.func) == "option"
            options.append(of_call(node))
        elif isinstance(node, ast.ClassDef) and any(
            "dataclass" in (last(d) or last(getattr(d, "func", d))) for d in node.decorator_list
        ):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and field.value is not None:
                    options.append(
                        of_annotation(last(field.target), field.annotation, field.value, enums, field.lineno, False)
                    )
        elif isinstance(node, ast.FunctionDef) and "typer" in libraries and (is_command(node) or node.name in started):
            clicked = True
            arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for one, value in [*zip(arguments, node.args.defaults), *zip(node.args.kwonlyargs, node.args.kw_defaults)]:
                if value is not None and one.annotation is not None:
                    options.append(of_annotation(one.arg, one.annotation, value, enums, one.lineno, True))
    found = {o["name"]: o for o in sorted(filter(None, options), key=lambda o: o["line"])}
    return {"options": list(found.values()), "libraries": sorted(libraries), "words": sorted(words), "clicked": clicked}


def main():
    source = pathlib.Path(sys.argv[1]).read_bytes()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        sys.exit(f"line {getattr(error, 'lineno', 0)}: {getattr(error, 'msg', error)}")
    json.dump(look(tree), sys.stdout)


main()
