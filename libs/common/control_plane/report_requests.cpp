#include "common/control_plane/report_requests.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "common/core/text.hpp"

namespace gitops::control_plane {
namespace {

bool is_uid_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

std::optional<ReportRequest> read_entry(std::string_view text) {
  const auto semicolon = text.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  const auto uid = text.substr(0, semicolon);
  const auto digits = text.substr(semicolon + 1);
  std::int64_t number = 0;
  const auto* const end = digits.data() + digits.size();
  const auto [read_to, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || read_to != end || number <= 0 || !is_requestable(uid)) {
    return std::nullopt;
  }
  return ReportRequest{.uid = std::string(uid), .number = number};
}

}  // namespace

bool is_requestable(std::string_view uid) {
  return !uid.empty() && uid.size() <= kMaxRequestedUid && std::ranges::all_of(uid, is_uid_char);
}

std::string to_head(std::span<const ReportRequest> requests) {
  std::string head;
  for (const auto& request : requests) {
    if (!head.empty()) head += ", ";
    head += request.uid + ';' + std::to_string(request.number);
  }
  return head;
}

std::vector<ReportRequest> read_report_requests(std::string_view head) {
  std::vector<ReportRequest> requests;
  while (true) {
    const auto comma = head.find(',');
    auto request = read_entry(trimmed(head.substr(0, comma)));
    if (!request || requests.size() == kMaxReportRequests) return {};
    requests.push_back(std::move(*request));
    if (comma == std::string_view::npos) return requests;
    head.remove_prefix(comma + 1);
  }
}

}  // namespace gitops::control_plane
