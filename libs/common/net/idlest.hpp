#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <vector>

namespace gitops::net {

// Closes connections that wait for a request, to make room for new ones in a full server. Closes
// the longest waiting ones, 1 in 256 of the limit at once, so that not every new connection needs a
// search. Returns false if none waits. `may_close` returns whether a connection may be closed.
//
// A Connection has waits(), waits_since(), and give_way(), which closes it.
template <class Connection, class MayClose>
bool close_idlest(const std::list<Connection*>& connections, std::size_t limit,
                  MayClose may_close) {
  std::vector<Connection*> waiting;
  for (Connection* connection : connections) {
    if (connection->waits() && may_close(*connection)) waiting.push_back(connection);
  }
  const auto count = std::min(waiting.size(), 1 + limit / 256);
  const auto last = waiting.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::partial_sort(waiting, last, {}, &Connection::waits_since);
  std::for_each(waiting.begin(), last, [](Connection* connection) { connection->give_way(); });
  return count > 0;
}

}  // namespace gitops::net
