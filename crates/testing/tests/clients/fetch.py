"""Calls a URL with the library that is named and prints what came: status, then body."""

import sys

how, url = sys.argv[1:3]
if how == "urllib":
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(url) as response:
            print(response.status, response.read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
elif how == "requests":
    import requests

    response = requests.get(url)
    print(response.status_code, response.text)
elif how == "httpx":
    import httpx

    response = httpx.get(url)
    print(response.status_code, response.text)
elif how == "aiohttp":
    import asyncio

    import aiohttp

    async def main():
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            print(response.status, await response.text())

    asyncio.run(main())
