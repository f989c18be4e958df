#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "common/core/async.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/socket_session.hpp"
#include "common/http/server.hpp"
#include "common/http/websocket.hpp"

namespace gitops::graphql {

// Context of one operation. A non-null `owner` is kept until the operation has ended.
struct OperationContext {
  Context context = {};
  std::shared_ptr<void> owner = {};
};
// Makes the context of each operation of an open session. Operations run concurrently: data that
// their admission changes must not be shared between them.
using MakeContext = std::function<OperationContext()>;

// Authorizes each operation of an open session, and each next event of a subscription if the last
// check was `recheck_interval` ago. No resolver of the operation runs meanwhile, so it may change
// the data of `context`. An error becomes the operation's response and ends it. The result is kept
// until the operation has ended.
using OperationAdmission = std::function<Task<Result<std::shared_ptr<void>>>(
    const Prepared& operation, const Context& context)>;

struct SocketOptions {
  SocketSessionOptions session = {};
  http::WebSocketOptions websocket = {};
  std::chrono::milliseconds timeout{60'000};  // of a query or a mutation
  OperationAdmission admission = {};          // empty: allows every operation
  std::chrono::milliseconds recheck_interval{30'000};
};

// Authorizes a client to open a session, by the payload of its connection_init (JSON text, may be
// empty), and returns the function that makes the contexts of its operations. The error's message
// is sent to the client.
using OpenSession = std::function<Task<Result<MakeContext>>(std::string_view payload)>;

// Runs either protocol on an open WebSocket until it ends. Operations run concurrently; those still
// running at the end are cancelled. A client that does not read delays its own operations only.
Task<> run_socket(http::WebSocket& socket, Engine& engine, OpenSession open, SocketOptions options);

// Serves a request to open a WebSocket for GraphQL. Refuses a client that offers neither protocol
// with close code 4406. The caller checks Origin.
Task<> serve_socket(http::Exchange& exchange, Engine& engine, OpenSession open,
                    SocketOptions options = {});

}  // namespace gitops::graphql
