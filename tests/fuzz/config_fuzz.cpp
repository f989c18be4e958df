// Flags, environment and YAML file from one input: the parts are separated by NUL bytes, the first
// line of each is the text, the last part is the file.

#include <sys/mman.h>
#include <unistd.h>

#include "common/core/config_reader.hpp"

namespace {

struct Config {
  std::string text;
  bool flag = false;
  std::int64_t number = 5;
  std::chrono::milliseconds duration{1000};
  std::vector<std::string> list;
  std::size_t choice = 0;
  gitops::Secret secret;
  std::string nested;
};

void bind(gitops::ConfigReader& reader, Config& config) {
  reader.add({"text", {"TEXT"}, "Text"}, config.text);
  reader.add({"flag", {"FLAG"}, "Flag"}, config.flag);
  reader.add({"number", {"NUMBER"}, "Number"}, config.number, -10, 10);
  reader.add({"duration", {"DURATION"}, "Duration"}, config.duration, std::chrono::milliseconds(0),
             std::chrono::hours(1));
  reader.add({"list", {"LIST"}, "List"}, config.list);
  reader.add_choice({"choice", {"CHOICE"}, "Choice"}, config.choice, {"a", "b"});
  reader.add_secret({"secret", {"SECRET"}, "Secret"}, config.secret);
  reader.add({"tls.name", {}, "Nested"}, config.nested);
}

void require(bool condition) {
  if (!condition) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> parts;
  while (true) {
    const auto end = input.find('\0');
    parts.emplace_back(input.substr(0, end));
    if (end == std::string_view::npos) break;
    input.remove_prefix(end + 1);
  }
  const int file = ::memfd_create("config", MFD_CLOEXEC);
  const std::string yaml = std::move(parts.back());
  parts.pop_back();
  if (::write(file, yaml.data(), yaml.size()) != static_cast<ssize_t>(yaml.size())) return 0;

  std::map<std::string, std::string> environment = {
      {"GITOPS_CONFIG", "/proc/self/fd/" + std::to_string(file)}};
  std::vector<std::string> flags;
  for (const std::string& part : parts) {
    const auto equals = part.find('=');
    const bool is_flag = part.starts_with("-") || equals == std::string::npos;
    // This target does not read files that a flag names.
    if (part.contains("config") || part.contains("-file")) continue;
    if (is_flag) {
      flags.push_back(part);
    } else {
      environment.emplace(part.substr(0, equals), part.substr(equals + 1));
    }
  }

  Config config;
  gitops::ConfigReader reader("fuzz", "Fuzz");
  bind(reader, config);
  const auto outcome = reader.load(flags, environment);
  ::close(file);
  // A stored value obeys its rule, whatever was reported.
  require(config.number >= -10 && config.number <= 10);
  require(config.duration >= std::chrono::milliseconds(0) &&
          config.duration <= std::chrono::hours(1));
  require(config.choice < 2);
  for (const std::string& item : config.list) require(!item.empty());
  for (const std::string& mistake : outcome.mistakes) require(!mistake.empty());
  return 0;
}
