#include "common/net/more_follows.hpp"

namespace gitops::net {
namespace {

thread_local bool more_follows = false;

}  // namespace

bool MoreFollows::is_set() {
  return more_follows;
}

void MoreFollows::set(bool value) {
  more_follows = value;
}

}  // namespace gitops::net
