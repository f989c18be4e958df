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

// The context of one operation. `owner` is kept until the operation has ended, if it is given.
struct OperationContext {
  Context context = {};
  std::shared_ptr<void> owner = {};
};
// Called for each operation of an open session. Operations run side by side: what their admission
// changes must not be shared between them.
using MakeContext = std::function<OperationContext()>;

// Asked before each operation of an open session, and before the next event of a subscription when it was
// last asked `recheck_interval` ago. No resolver of the operation runs meanwhile, so it may change what `context` refers to.
// An error is the operation's answer and its end. What it returns is kept until the operation has ended.
using OperationAdmission = std::function<Task<Result<std::shared_ptr<void>>>(
    const Prepared& operation, const Context& context)>;

struct SocketOptions {
  SocketSessionOptions session = {};
  http::WebSocketOptions websocket = {};
  std::chrono::milliseconds timeout{60'000};  // of a query or a mutation
  OperationAdmission admission = {};          // none: every operation
  std::chrono::milliseconds recheck_interval{30'000};
};

// Decides whether a client may open a session, by the payload of its connection_init (JSON text, may be
// empty), and says how the contexts of its operations are made. The message of an error is told to the
// client.
using OpenSession = std::function<Task<Result<MakeContext>>(std::string_view payload)>;

// Runs either protocol on an open WebSocket until it ends. Operations run side by side; those that
// still run at the end are cancelled. A client that does not read holds up its own operations only.
Task<> run_socket(http::WebSocket& socket, Engine& engine, OpenSession open, SocketOptions options);

// Answers a request to open a WebSocket for GraphQL. A client that offers neither protocol is refused
// with close code 4406. Whose site the request comes from (Origin) is the caller's to check.
Task<> serve_socket(http::Exchange& exchange, Engine& engine, OpenSession open,
                    SocketOptions options = {});

}  // namespace gitops::graphql
