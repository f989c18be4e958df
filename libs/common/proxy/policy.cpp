#include "common/proxy/policy.hpp"

namespace gitops::proxy {

std::string_view to_string(Failure failure) {
  switch (failure) {
    case Failure::none:
      return "none";
    case Failure::malformed_request:
      return "malformed_request";
    case Failure::head_timeout:
      return "head_timeout";
    case Failure::body_too_large:
      return "body_too_large";
    case Failure::body_timeout:
      return "body_timeout";
    case Failure::malformed_body:
      return "malformed_body";
    case Failure::too_much_held:
      return "too_much_held";
    case Failure::no_such_host:
      return "no_such_host";
    case Failure::address_refused:
      return "address_refused";
    case Failure::connect_failed:
      return "connect_failed";
    case Failure::connect_timeout:
      return "connect_timeout";
    case Failure::answer_timeout:
      return "answer_timeout";
    case Failure::upstream_lost:
      return "upstream_lost";
    case Failure::upstream_unavailable:
      return "upstream_unavailable";
    case Failure::malformed_answer:
      return "malformed_answer";
    case Failure::client_gone:
      return "client_gone";
  }
  return "unknown";
}

bool is_unavailable(int status) {
  return status >= 500 && status != 501 && status != 505;
}

}  // namespace gitops::proxy
