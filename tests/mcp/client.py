"""Calls the same tools with the official client, over HTTP and standard input: client.py URL KEY PROGRAM CALLS.

Prints a list of {client, version, tools, results}.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

URL, KEY, PROGRAM, CALLS = sys.argv[1:5]


def over_http():
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"})
    return streamable_http_client(f"{URL}/mcp", http_client=client)


def over_standard_input():
    environment = {**os.environ, "TIDEMARK_URL": URL, "TIDEMARK_API_KEY": KEY}
    return stdio_client(StdioServerParameters(command=PROGRAM, args=["mcp"], env=environment))


async def check(name, transport, mode):
    async with Client(transport, mode=mode) as client:
        tools = (await client.list_tools()).tools
        results = []
        for call in json.loads(CALLS):
            # Checks the structured content with the tool's schema.
            result = await client.call_tool(call["name"], call["arguments"])
            results.append(json.loads(result.content[0].text) if result.is_error else result.structured_content)
        version = client.protocol_version
        return {"client": name, "version": version, "tools": len(tools), "results": results}


async def main():
    report = []
    for mode in ["auto", "legacy", "2026-07-28"]:
        for transport in [over_http, over_standard_input]:
            report.append(await check(f"{mode} {transport.__name__}", transport(), mode))
    print(json.dumps(report))


asyncio.run(main())
