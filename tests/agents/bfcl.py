"""Backends, functions and recorded conversations of the package bfcl-eval, read without its own dependencies."""

import ast
import importlib
import json
from pathlib import Path

import bfcl_eval

DATA = Path(bfcl_eval.__file__).parent / "data"
SOURCES = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code."
MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
TYPES = {"dict": "object", "float": "number", "tuple": "array"}


def app(name):
    """The app of a backend."""
    return name.removesuffix("API").removesuffix("System").lower()


def backend(name):
    return getattr(importlib.import_module(SOURCES + MODULES[name]), name)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def schema(value):
    """The leaderboard's schema as JSON Schema."""
    if isinstance(value, list):
        return [schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: schema(item) for key, item in value.items()}
    if isinstance(value.get("type"), str):
        made["type"] = TYPES.get(value["type"], value["type"])
        if made["type"] == "any":
            del made["type"]
    return made


def functions(name):
    """Description and input schema by function, in the order of the leaderboard."""
    path = DATA / "multi_turn_func_doc" / f"{file_of(name)}.json"
    return {line["name"]: {"description": line["description"], "schema": schema(line["parameters"])} for line in lines(path)}


def file_of(name):
    return MODULES[name]


def calls(texts, apps):
    """Recorded calls such as `cd(folder='x')`, as calls of tools."""
    made = []
    for text in texts:
        call = ast.parse(text, mode="eval").body
        name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
        owner = next(one for one in apps if name in functions(one))
        parameters = list(functions(owner)[name]["schema"]["properties"])
        given = dict(zip(parameters, (ast.literal_eval(value) for value in call.args)))
        given |= {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        made.append({"tool": f"{app(owner)}:{name}", "input": given})
    return made


def tasks(first, last):
    """Conversations of the multi-turn base set, as a file of tasks for `gatewright eval context`."""
    questions = lines(DATA / "BFCL_v4_multi_turn_base.json")[first:last]
    answers = {line["id"]: line["ground_truth"] for line in lines(DATA / "possible_answer" / "BFCL_v4_multi_turn_base.json")}
    made = []
    for question in questions:
        apps = [name for name in question["involved_classes"] if name in MODULES]
        turns = []
        for asked, texts in zip(question["question"], answers[question["id"]]):
            if texts and asked:
                turns.append({"ask": asked[-1]["content"], "calls": calls(texts, apps)})
        setup = [
            {"tool": f"{app(name)}:load_scenario", "input": {"scenario": question["initial_config"].get(name, {})}} for name in apps
        ]
        made.append({"name": question["id"], "apps": [app(name) for name in apps], "setup": setup, "turns": turns})
    return {"tasks": made}
