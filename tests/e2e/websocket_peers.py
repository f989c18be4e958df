#!/usr/bin/env python3
"""WebSocket server and clients of python3-websockets, which share no code with what is tested.

  websocket_peers.py serve             an echo server; prints its port
  websocket_peers.py talk URL [plain]  all kinds of messages there and back; plain: with a server
                                       that knows no extension
  websocket_peers.py idle URL SECONDS  silent for half of the limit, then for good; another
                                       connection, which only pings, outlives it
"""
import asyncio
import sys

import websockets

PROTOCOL = 'graphql-transport-ws'


async def echo(connection):
    async for message in connection:
        if message == 'close':
            await connection.close(4001, 'as you wish')
        await connection.send(message)


async def serve():
    async with websockets.serve(echo, '127.0.0.1', 0, subprotocols=[PROTOCOL], ping_interval=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


def connect(url):
    return websockets.connect(url, subprotocols=[PROTOCOL], ping_interval=None)


async def talk(url, extensions):
    async with connect(url) as connection:
        assert connection.subprotocol == PROTOCOL
        deflates = 'permessage-deflate' in connection.response_headers.get('Sec-WebSocket-Extensions', '')
        assert deflates == (extensions != 'plain')
        for message in ['short', 'ünï¢ode', '', bytes(range(256)) * 3000, 'x' * 900_000]:
            await connection.send(message)
            assert await connection.recv() == message
        await connection.send(['in ', 'three ', 'fragments'])
        assert await connection.recv() == 'in three fragments'
        await (await connection.ping(b'are you there'))
        await connection.send('close')
        await connection.wait_closed()
        assert (connection.close_code, connection.close_reason) == (4001, 'as you wish')


async def idle(url, limit):
    async with connect(url) as silent, connect(url) as pinging:
        async def ping():
            while silent.open:
                await (await pinging.ping())
                await asyncio.sleep(limit / 8)
            await pinging.send('still here')
            assert await pinging.recv() == 'still here'

        pings = asyncio.create_task(ping())
        await asyncio.sleep(limit / 2)
        await silent.send('after half of the limit')
        assert await silent.recv() == 'after half of the limit'
        await silent.wait_closed()
        assert silent.close_code == 1006, silent.close_code
        await pings


if __name__ == '__main__':
    command, *arguments = sys.argv[1:]
    if command == 'serve':
        asyncio.run(serve())
    elif command == 'talk':
        asyncio.run(talk(arguments[0], *(arguments[1:] or [''])))
    else:
        asyncio.run(idle(arguments[0], float(arguments[1])))
