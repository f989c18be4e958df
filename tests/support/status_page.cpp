#include "support/status_page.hpp"

#include <algorithm>
#include <ostream>

namespace gitops::test {
namespace {

using Json = nlohmann::json;

std::string_view text_of(const Json& entry, const char* member) {
  return entry[member].get_ref<const std::string&>();
}

}  // namespace

StatusPage::StatusPage(std::string_view body) : body_(body) {
  const auto page = Json::parse(body, nullptr, false);
  if (page.is_object() && page.contains("entries")) add(page["entries"]);
}

StatusPage::StatusPage(const StatusReport& report) : body_(status_json(report)) {
  add(Json::parse(body_));
}

void StatusPage::add(const Json& entries) {
  for (const Json& entry : entries) {
    entries_.push_back(entry);
    if (entry.contains("details")) add(entry["details"]);
  }
}

const Json* StatusPage::find(std::string_view name) const {
  const auto found =
      std::ranges::find(entries_, name, [](const Json& entry) { return text_of(entry, "name"); });
  return found == entries_.end() ? nullptr : &*found;
}

Json StatusPage::value(std::string_view name, const std::string& key) const {
  const auto* entry = find(name);
  if (entry == nullptr || !entry->contains("values")) return {};
  return (*entry)["values"].value(key, Json());
}

std::string StatusPage::state(std::string_view name) const {
  const auto* entry = find(name);
  return std::string(entry == nullptr ? "" : text_of(*entry, "state"));
}

std::string StatusPage::message(std::string_view name) const {
  const auto* entry = find(name);
  return std::string(entry == nullptr ? "" : text_of(*entry, "message"));
}

std::string StatusPage::since(std::string_view name) const {
  const auto* entry = find(name);
  return entry == nullptr ? "" : entry->value("since", "");
}

std::int64_t StatusPage::count(std::string_view name, const std::string& key) const {
  const auto found = value(name, key);
  return found.is_number_integer() ? found.get<std::int64_t>() : -1;
}

std::string StatusPage::text(std::string_view name, const std::string& key) const {
  const auto found = value(name, key);
  return found.is_string() ? found.get<std::string>() : "";
}

std::size_t StatusPage::count_if(const std::function<bool(const Json& entry)>& is_wanted) const {
  return static_cast<std::size_t>(std::ranges::count_if(entries_, is_wanted));
}

std::size_t StatusPage::count_in_state(std::string_view prefix, std::string_view state) const {
  return count_if([&](const Json& entry) {
    return text_of(entry, "state") == state && text_of(entry, "name").starts_with(prefix);
  });
}

std::ostream& operator<<(std::ostream& out, const StatusPage& page) {
  return out << page.body_;
}

}  // namespace gitops::test
