"""Lets aiohttp use the proxy of the environment, which it does only when told, then runs the next sitecustomize."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class TrustEnvironment(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "aiohttp.client":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_patch(module):
            execute(module)
            init = module.ClientSession.__init__

            def trusting(self, *args, **kwargs):
                kwargs.setdefault("trust_env", True)
                init(self, *args, **kwargs)

            module.ClientSession.__init__ = trusting

        spec.loader.exec_module = execute_and_patch
        return spec


sys.meta_path.insert(0, TrustEnvironment())

elsewhere = [place for place in sys.path if os.path.abspath(place or ".") != HERE]
following = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
if following is not None and following.loader is not None:
    module = importlib.util.module_from_spec(following)
    following.loader.exec_module(module)
