#include "event-reporter/shards/app_distribution.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "common/core/encoding.hpp"
#include "event-reporter/shards/shard.hpp"

namespace gitops::reporter {
namespace {

constexpr std::size_t kMaxShardings = 16;

// Returns the names in the order of the text, without repetitions; at most one more than
// kMaxShardings.
std::vector<std::string_view> names_in(std::string_view shardings) {
  std::vector<std::string_view> names;
  while (!shardings.empty() && names.size() <= kMaxShardings) {
    const auto name = shardings.substr(0, shardings.find(','));
    shardings.remove_prefix(std::min(name.size() + 1, shardings.size()));
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  if (names.empty()) names.emplace_back("default");
  return names;
}

}  // namespace

Result<std::string> app_distribution(std::span<const AppName> apps, std::uint32_t replicas,
                                     std::string_view shardings) {
  const auto names = names_in(shardings);
  if (names.size() > kMaxShardings) {
    return fail(ErrorCode::invalid_argument,
                "more than " + std::to_string(kMaxShardings) + " shardings requested");
  }
  std::map<std::string, std::uint32_t> shards;
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto& app : apps) {
    const auto shard = shard_of(app.name, replicas);
    const auto key = std::string(app.ns) + "/" + std::string(app.name);
    if (shards.emplace(key, shard).second) ++counts[shard];
  }
  std::string each = R"({"distribution":{)";
  for (const auto& [shard, count] : counts) {
    if (each.back() != '{') each += ',';
    each += '"' + std::to_string(shard) + "\":" + std::to_string(count);
  }
  each += R"(},"apps":{)";
  for (const auto& [key, shard] : shards) {
    if (each.back() != '{') each += ',';
    each += json_string(key) + ':' + std::to_string(shard);
  }
  each += "}}";
  std::string out = "{";
  for (const auto& name : names) {
    if (out.size() > 1) out += ',';
    out += json_string(name) + ':' + each;
  }
  return out + '}';
}

}  // namespace gitops::reporter
