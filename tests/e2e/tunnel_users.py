#!/usr/bin/env python3
"""Users of a tunnel, over HTTPS on kept-alive connections. Python's http.client shares no code with
what is tested, and repeats nothing.

  tunnel_users.py CA_FILE HOST PORT_FILE STOP_FILE USERS

New connections go to the port of 127.0.0.1 that PORT_FILE holds at the moment, as behind a load
balancer. Each request carries a number of its own; every third one is a POST, whose body must come
back. When STOP_FILE exists, the users finish; the last line is then "N requests, N posts, N
connections, N failed", and a line for each failure stands above it.
"""
import http.client
import os
import random
import socket
import ssl
import sys
import threading
import time

ADDRESS = '127.0.0.7'  # of the users; the programs between have 127.0.0.1


class Connection(http.client.HTTPSConnection):
    def __init__(self, host, port, context):
        super().__init__(host, context=context, timeout=20)
        self.to = port
        self.opened = 0

    def connect(self):
        # Also called for the next request after an answer with "Connection: close".
        bare = socket.create_connection(('127.0.0.1', self.to()), self.timeout, (ADDRESS, 0))
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._context.wrap_socket(bare, server_hostname=self.host)
        self.opened += 1


class User(threading.Thread):
    def __init__(self, number, connection, stop_file):
        super().__init__()
        self.number = number
        self.connection = connection
        self.stop_file = stop_file
        self.requests = self.posts = 0
        self.failures = []

    def run(self):
        chance = random.Random(self.number)
        while not os.path.exists(self.stop_file):
            request = f'{self.number}-{self.requests}'
            is_post = self.requests % 3 == 0
            self.requests += 1
            self.posts += is_post
            body = (request + ' ') * chance.choice([1, 100, 20_000]) if is_post else None
            begin = time.monotonic()
            try:
                self.send(request, body)
            except Exception as error:
                took = time.monotonic() - begin
                self.failures.append(f'{time.strftime("%T", time.gmtime())} request {request} after '
                                     f'{took:.3f} s: {type(error).__name__}: {error}')
                self.connection.close()
            time.sleep(chance.uniform(0, 0.03))
        self.connection.close()

    def send(self, request, body):
        method = 'GET' if body is None else 'POST'
        self.connection.request(method, f'/app-proxy/{request}', body)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        expected = request if body is None else body
        if answer.status != 200 or text != expected:
            raise ValueError(f'{answer.status} {text[:200]!r}')


def main(ca_file, host, port_file, stop_file, users):
    context = ssl.create_default_context(cafile=ca_file)

    def port():
        with open(port_file) as file:
            return int(file.read())

    all_users = [User(number, Connection(host, port, context), stop_file)
                 for number in range(int(users))]
    for user in all_users:
        user.start()
    for user in all_users:
        user.join()
    failures = [failure for user in all_users for failure in user.failures]
    print('\n'.join(sorted(failures)))
    print(f'{sum(user.requests for user in all_users)} requests, '
          f'{sum(user.posts for user in all_users)} posts, '
          f'{sum(user.connection.opened for user in all_users)} connections, '
          f'{len(failures)} failed')


if __name__ == '__main__':
    main(*sys.argv[1:])
