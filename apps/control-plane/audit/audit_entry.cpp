#include "control-plane/audit/audit_entry.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "common/core/crypto.hpp"
#include "common/core/text.hpp"
#include "control-plane/projection/event_text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::array<std::string_view, 4> kResults{"done", "refused", "failed", "not known"};
constexpr std::size_t kMaxText = 200;
constexpr std::size_t kMaxDetail = 500;

// Replaces what is between "://" and an '@' before the path.
std::string without_userinfo(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto begin = text.find("://");
    const auto host = begin == std::string_view::npos ? text.size() : begin + 3;
    out += text.substr(0, host);
    text.remove_prefix(host);
    const auto at = text.find('@');
    if (at == std::string_view::npos || text.substr(0, at).find_first_of("/ \"") != text.npos) {
      continue;
    }
    out += "***";
    text.remove_prefix(at);
  }
  return out;
}

std::string clean(std::string_view text, std::size_t most) {
  auto out = shortened(without_userinfo(text), most);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return out;
}

std::string cell(std::string_view text) {
  std::string out = "\"";
  if (!text.empty() && std::string_view("=+-@").contains(text.front())) out += '\'';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string line_of(std::initializer_list<std::string_view> cells) {
  std::string line;
  for (const auto text : cells) {
    if (!line.empty()) line += ',';
    line += cell(text);
  }
  return line + "\r\n";
}

}  // namespace

std::string_view to_string(AuditResult result) {
  return kResults.at(static_cast<std::size_t>(result));
}

std::optional<AuditResult> audit_result_of(std::string_view name) {
  const auto* const found = std::ranges::find(kResults, name);
  if (found == kResults.end()) return std::nullopt;
  return static_cast<AuditResult>(found - kResults.begin());
}

AuditEntry cleaned(AuditEntry entry) {
  for (auto* text : {&entry.caller, &entry.caller_id, &entry.peer, &entry.action, &entry.target,
                     &entry.request_id}) {
    *text = clean(*text, kMaxText);
  }
  entry.detail = clean(entry.detail, kMaxDetail);
  return entry;
}

std::string audit_digest(std::string_view before, const AuditEntry& entry) {
  Sha256 sum;
  sum.add(before);
  const auto add = [&sum](std::string_view text) {
    sum.add(std::to_string(text.size()) + ":");
    sum.add(text);
  };
  for (const auto number :
       {entry.account, entry.no, entry.at, static_cast<std::int64_t>(entry.result)}) {
    add(std::to_string(number));
  }
  for (const auto* text : {&entry.caller, &entry.caller_id, &entry.peer, &entry.action,
                           &entry.target, &entry.detail, &entry.request_id}) {
    add(*text);
  }
  const auto bytes = sum.finish();
  return std::string(bytes_of(bytes));
}

std::string audit_csv(const std::vector<AuditEntry>& entries) {
  auto csv = line_of({"no", "time", "caller", "callerId", "address", "action", "target", "result",
                      "detail", "requestId"});
  for (const auto& entry : entries) {
    csv += line_of({std::to_string(entry.no), time_text(entry.at), entry.caller, entry.caller_id,
                    entry.peer, entry.action, entry.target, to_string(entry.result), entry.detail,
                    entry.request_id});
  }
  return csv;
}

}  // namespace gitops::control_plane_server
