"""An agent by the protocol's Python SDK: agent.py URL, or agent.py COMMAND ARGUMENT ...

Standard input has a JSON list of calls, [tool, arguments]; standard output gets what was
agreed on and answered.
"""

import asyncio
import json
import os
import sys

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client


async def ask(server, calls):
    async with mcp.Client(server, client_info=mcp.Implementation(name="python", version="1")) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answers = []
        for tool, arguments in calls:
            try:
                answer = await client.call_tool(tool, arguments)
                answers.append({"failed": answer.is_error, "text": "".join(part.text for part in answer.content)})
            except mcp.MCPError as error:
                answers.append({"failed": True, "text": str(error)})
        return {"server": client.server_info.name, "tools": tools, "answers": answers}


async def main(address, *arguments):
    calls = json.load(sys.stdin)
    if not address.startswith("http"):
        return await ask(mcp.StdioServerParameters(command=address, args=list(arguments), env=dict(os.environ)), calls)
    headers = {"Authorization": "Bearer " + os.environ["TANDEM_TOKEN"]}
    async with httpx2.AsyncClient(headers=headers) as http:
        return await ask(streamable_http_client(address, http_client=http), calls)


json.dump(asyncio.run(main(*sys.argv[1:])), sys.stdout)
