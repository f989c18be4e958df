#include "event-reporter/report/event_id.hpp"

#include "common/core/encoding.hpp"
#include "event-reporter/ledger/ledger_entry.hpp"

namespace gitops::reporter {

std::string event_id(std::string_view uid, std::string_view part, Sequence sequence,
                     const Digest& content) {
  std::string id = percent_encode(uid);
  id.append("/").append(part).append("/").append(std::to_string(sequence));
  return id.append("/").append(content == kGone ? "gone" : to_hex(content, 4));
}

std::string part_of(const ResourceId& id) {
  std::string out;
  for (const auto& piece : {id.group, id.version, id.kind, id.ns, id.name}) {
    out += percent_encode(piece) + ":";
  }
  out.pop_back();
  return out;
}

}  // namespace gitops::reporter
