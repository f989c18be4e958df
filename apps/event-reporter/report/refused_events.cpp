#include "event-reporter/report/refused_events.hpp"

#include <chrono>
#include <functional>
#include <utility>

#include "common/core/json_text.hpp"
#include "common/core/time.hpp"

namespace gitops::reporter {
namespace {

using Visit = std::function<void(std::string_view key, const LedgerHead& head, const Refusal&)>;

void for_each_refusal(const Ledger& ledger, const Visit& visit) {
  for (const auto& [key, head] : ledger.known()) {
    for (const auto& refusal : head.refused) visit(key, head, refusal);
  }
  for (const auto& [row, head] : ledger.inventory()) {
    for (const auto& refusal : head.refused) visit(key_of_row(row), head, refusal);
  }
}

std::string subject_of(std::string_view key, const Refusal& refusal) {
  return std::string(key) + (refusal.part.empty() ? "" : " " + refusal.part);
}

WallTime since(const Refusal& refusal) {
  return WallTime(std::chrono::seconds(refusal.since));
}

}  // namespace

StatusReport refused_status(const Ledger& ledger) {
  StatusEntry all{.name = "refused events", .state = StatusState::degraded};
  for_each_refusal(ledger, [&](std::string_view key, const LedgerHead&, const Refusal& refusal) {
    if (all.details.size() == kMaxStatusDetails) {
      ++all.omitted;
      return;
    }
    all.add_detail(
        {.name = subject_of(key, refusal) + (refusal.digest == kGone ? " (deletion)" : ""),
         .state = StatusState::failed,
         .message = refusal.reason,
         .since = since(refusal)});
  });
  const auto count = all.details.size() + all.omitted;
  if (count == 0) return {};
  all.add_count("count", count, "");
  return {std::move(all)};
}

std::string refused_json(const Ledger& ledger, std::string_view object) {
  std::string out = "[";
  for_each_refusal(ledger,
                   [&](std::string_view key, const LedgerHead& head, const Refusal& refusal) {
                     if (!object.empty() && key != object) return;
                     out += out.size() == 1 ? "\n" : ",\n";
                     ObjectWriter writer(out);
                     writer.text("subject", subject_of(key, refusal));
                     writer.text("uid", head.uid);
                     writer.raw("sequence", std::to_string(refusal.sequence));
                     writer.raw("deletion", refusal.digest == kGone ? "true" : "false");
                     writer.text("since", format_rfc3339(since(refusal)));
                     writer.raw("http_status", std::to_string(refusal.status));
                     writer.text("reason", refusal.reason);
                     writer.end();
                   });
  return out + "\n]";
}

}  // namespace gitops::reporter
