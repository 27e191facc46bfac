"""How often a load runs, told by who calls it: each kind of program that scripts are written as."""

from __future__ import annotations

import pytest
from script.samples import HEAD, facts_of, script

from remediate.script.facts import Scope

LOAD = 'AutoModelForCausalLM.from_pretrained("m")'

REPEATED = {
    "fastapi": """
        from fastapi import FastAPI
        app = FastAPI()
        @app.post("/")
        async def answer(text: str):
            model = LOAD
            return model.generate(text)
        """,
    "flask through a function": """
        from flask import Flask
        app = Flask(__name__)
        def get():
            return LOAD
        @app.route("/")
        def answer():
            return get().generate()
        """,
    "flask-restful": """
        from flask_restful import Resource
        class Answer(Resource):
            def post(self):
                return LOAD.generate()
        """,
    "django view": """
        from django.http import JsonResponse
        def answer(request):
            return JsonResponse(LOAD.generate())
        """,
    "gradio": """
        import gradio as gr
        def answer(text):
            return LOAD.generate(text)
        gr.Interface(fn=answer, inputs="text", outputs="text").launch()
        """,
    "gradio with a lambda": """
        import gradio as gr
        def answer(text):
            return LOAD.generate(text)
        button = gr.Button()
        button.click(lambda text: answer(text))
        """,
    "a partial": """
        import functools
        import gradio as gr
        def answer(name, text):
            return LOAD.generate(text)
        gr.ChatInterface(functools.partial(answer, "m"))
        """,
    "celery": """
        from celery import Celery
        app = Celery()
        @app.task
        def answer(text):
            return LOAD.generate(text)
        """,
    "ray task": """
        import ray
        @ray.remote(num_gpus=1)
        def answer(text):
            return LOAD.generate(text)
        """,
    "ray serve": """
        from ray import serve
        @serve.deployment
        class Answer:
            def __call__(self, request):
                return LOAD.generate()
        """,
    "lambda function": """
        def lambda_handler(event, context):
            return LOAD.generate(event["text"])
        """,
    "runpod": """
        import runpod
        def work(job):
            return LOAD.generate(job["input"])
        runpod.serverless.start({"handler": work})
        """,
    "triton": """
        class TritonPythonModel:
            def execute(self, requests):
                return [LOAD.generate() for request in requests]
        """,
    "grpc": """
        import service_pb2_grpc
        class Answer(service_pb2_grpc.AnswerServicer):
            def Predict(self, request, context):
                return LOAD.generate(request.text)
        """,
    "telegram": """
        from telegram.ext import Application, MessageHandler
        async def answer(update, context_):
            LOAD.generate(update.text)
        app = Application.builder().build()
        app.add_handler(MessageHandler(None, answer))
        """,
    "discord command": """
        from discord.ext import commands
        bot = commands.Bot("!")
        @bot.command()
        async def ask(ctx, *, text):
            await ctx.send(LOAD.generate(text))
        """,
    "a map": """
        def answer(text):
            return LOAD.generate(text)
        answers = list(map(answer, ["a", "b"]))
        """,
    "a data frame": """
        import pandas as pd
        frame = pd.read_csv("x.csv")
        frame["answer"] = frame["text"].apply(lambda text: LOAD.generate(text))
        """,
    "a loop": """
        def answer(text):
            return LOAD.generate(text)
        for text in ("a", "b"):
            print(answer(text))
        """,
    "an object for each request": """
        from flask import Flask
        app = Flask(__name__)
        class Model:
            def __init__(self):
                self.model = LOAD
            def run(self):
                return self.model.generate()
        @app.post("/")
        def answer():
            return Model().run()
        """,
    "a loader without a test, called by a handler": """
        from flask import Flask
        app = Flask(__name__)
        def load():
            global model
            model = LOAD
        @app.post("/")
        def answer():
            load()
            return model.generate()
        """,
    "a global that is only read": """
        from flask import Flask
        app = Flask(__name__)
        @app.post("/")
        def answer():
            global settings
            if settings.closed is not None:
                return "closed"
            return LOAD.generate()
        """,
    "one process for each GPU and data set": """
        import torch.multiprocessing as mp
        def work(rank, data):
            LOAD.generate(data)
        for data in ("a", "b"):
            for rank in range(2):
                mp.Process(target=work, args=(rank, data)).start()
        """,
}
ONCE = {
    "a constructor": """
        class Model:
            def __init__(self):
                self.model = LOAD
            def answer(self, text):
                return self.model.generate(text)
        """,
    "a lifespan": """
        from contextlib import asynccontextmanager
        @asynccontextmanager
        async def lifespan(app):
            app.state.model = LOAD
            yield
        def answer(app, text):
            return app.state.model.generate(text)
        """,
    "a worker hook": """
        from celery.signals import worker_process_init
        @worker_process_init.connect
        def start(**kwargs):
            global model
            model = LOAD
        """,
    "a cached function": """
        from functools import lru_cache
        @lru_cache(maxsize=1)
        def get():
            return LOAD
        def answer(text):
            return get().generate(text)
        """,
    "a dictionary": """
        from flask import Flask
        app = Flask(__name__)
        CACHE = {}
        @app.post("/<name>")
        def answer(name):
            if name not in CACHE:
                model = LOAD
                CACHE[name] = model
            return CACHE[name].generate()
        """,
    "a dictionary by its error": """
        CACHE = {}
        def get(name):
            try:
                return CACHE[name]
            except KeyError:
                model = LOAD
                CACHE[name] = model
                return model
        def answer(name):
            return get(name).generate()
        """,
    "an attribute that is returned early": """
        class Service:
            model = None
            def get(self):
                if self.model is not None:
                    return self.model
                self.model = LOAD
                return self.model
            def answer(self, text):
                return self.get().generate(text)
        """,
    "an endpoint that loads on demand": """
        from fastapi import FastAPI
        app = FastAPI()
        @app.post("/load/{name}")
        def load(name: str):
            global model
            model = LOAD
        @app.post("/answer")
        def answer(text: str):
            return model.generate(text)
        """,
    "a loop over models": """
        for name in ("small", "large"):
            model = AutoModelForCausalLM.from_pretrained(name)
            print(model.generate())
        """,
    "a loop over models through a function": """
        def run(name):
            model = AutoModelForCausalLM.from_pretrained(f"org/{name}")
            return model.generate()
        for name in ("small", "large"):
            print(run(name))
        """,
    "a loop over models through two functions": """
        def load(path):
            return AutoModelForCausalLM.from_pretrained(path)
        def run(name):
            return load(f"org/{name}").generate()
        for name in ("small", "large"):
            print(run(name))
        """,
    "one process for each GPU": """
        import torch.multiprocessing as mp
        def work(rank):
            LOAD.generate()
        for rank in range(2):
            mp.Process(target=work, args=(rank,)).start()
        """,
    "a command": """
        import typer
        app = typer.Typer()
        @app.command()
        def main(text: str):
            print(LOAD.generate(text))
        """,
    "main below the guard": """
        def main():
            print(LOAD.generate())
        if __name__ == "__main__":
            main()
        """,
    "a retry loop": """
        while True:
            try:
                model = LOAD
                break
            except OSError:
                continue
        model.generate()
        """,
    "streamlit, cached": """
        import streamlit as st
        @st.cache_resource
        def get():
            return LOAD
        st.write(get().generate())
        """,
    "streamlit, in the session": """
        import streamlit as st
        if "model" not in st.session_state:
            st.session_state.model = LOAD
        st.write(st.session_state.model.generate())
        """,
}


def scope_of(text: str) -> Scope:
    (load,) = facts_of(HEAD + script(text.replace("LOAD", LOAD))).models
    return load.scope


@pytest.mark.parametrize("name", REPEATED)
def test_a_load_that_runs_again_and_again_is_known(name: str) -> None:
    assert scope_of(REPEATED[name]).is_repeated


@pytest.mark.parametrize("name", ONCE)
def test_a_load_that_is_kept_is_no_reload(name: str) -> None:
    scope = scope_of(ONCE[name])
    assert not scope.is_repeated
    assert scope is not Scope.UNKNOWN
