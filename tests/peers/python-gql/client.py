"""The Python client gql, as public GitOps steps use it: asks for the schema first, checks each
document against it, and sends it.

    client.py URL OPERATIONS

The API key is in CF_API_KEY; OPERATIONS is the JSON of [{"query", "variables"}]. Prints a list with
{"data"} or {"error"} for each; an error is the text of the first one, as Python shows it.
"""

import json
import os
import sys

from gql import Client, gql
from gql.transport.exceptions import TransportQueryError
from gql.transport.requests import RequestsHTTPTransport


def main() -> None:
    transport = RequestsHTTPTransport(
        url=sys.argv[1], headers={"Authorization": os.environ["CF_API_KEY"]}, timeout=30
    )
    client = Client(transport=transport, fetch_schema_from_transport=True)
    results = []
    for operation in json.loads(sys.argv[2]):
        document = gql(operation["query"])
        try:
            data = client.execute(document, variable_values=operation.get("variables"))
            results.append({"data": data})
        except TransportQueryError as error:
            results.append({"error": str(error.errors[0])})
    print(json.dumps(results))


main()
