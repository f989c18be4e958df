#include "gitopsctl/contexts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/json_value.hpp"
#include "common/core/small_file.hpp"
#include "gitopsctl/private_file.hpp"

namespace gitops::ctl {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string value_of(const cli::Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

void make_folder_of(const std::string& path) {
  const auto folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && fs::create_directories(folder, error)) {
    fs::permissions(folder, fs::perms::owner_all, error);
  }
}

// A lock on changing a file, held by another file beside it. Waits until nobody else holds it.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : file_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                     S_IRUSR | S_IWUSR)) {
    // A file system without locks is used without.
    while (file_ >= 0 && ::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (file_ >= 0) ::close(file_);
  }
  [[nodiscard]] bool is_open() const { return file_ >= 0; }

 private:
  int file_;
};

// Returns whether every member is a text, but `insecure`.
bool is_readable(const Json& json) {
  for (const auto& [name, value] : json.items()) {
    if (name == "insecure" ? !value.is_boolean() : !value.is_string()) return false;
  }
  return json.is_object();
}

}  // namespace

const Context* Contexts::find(const std::string& name) const {
  const auto found = std::ranges::find(all, name, &Context::name);
  return found == all.end() ? nullptr : &*found;
}

void Contexts::put(Context context) {
  std::erase_if(all, [&](const Context& one) { return one.name == context.name; });
  const auto at = std::ranges::lower_bound(all, context.name, {}, &Context::name);
  all.insert(at, std::move(context));
}

bool Contexts::remove(const std::string& name) {
  const bool was_current = current == name;
  const auto removed = std::erase_if(all, [&](const Context& one) { return one.name == name; });
  if (was_current) current.clear();
  return removed > 0;
}

Result<Contexts> parse_contexts(const std::string& text) {
  const Json file = parse_json_object(text);
  const Json& all = value_at(file, {"contexts"});
  if (!all.is_object()) return fail(ErrorCode::invalid_data, "it is not JSON with contexts");
  Contexts contexts{.current = string_at(file, {"current"})};
  for (const auto& [name, json] : all.items()) {
    Context context{.name = name,
                    .url = string_at(json, {"url"}),
                    .token = Secret(string_at(json, {"token"})),
                    .token_file = string_at(json, {"token-file"}),
                    .ca_file = string_at(json, {"ca-file"}),
                    .insecure = value_at(json, {"insecure"}) == true};
    if (!is_readable(json) || context.url.empty()) {
      return fail(ErrorCode::invalid_data, "context " + name + " is not as gitopsctl writes it");
    }
    contexts.put(std::move(context));
  }
  return contexts;
}

std::string contexts_text(const Contexts& contexts) {
  Json all = Json::object();
  for (const Context& context : contexts.all) {
    Json& at = all[context.name];
    at["url"] = context.url;
    if (!context.token.empty()) at["token"] = std::string(context.token.reveal());
    if (!context.token_file.empty()) at["token-file"] = context.token_file;
    if (!context.ca_file.empty()) at["ca-file"] = context.ca_file;
    if (context.insecure) at["insecure"] = true;
  }
  const Json file{{"current", contexts.current}, {"contexts", std::move(all)}};
  return file.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string contexts_path(const cli::Environment& environment) {
  if (auto path = value_of(environment, "GITOPSCTL_CONTEXTS"); !path.empty()) return path;
  auto folder = value_of(environment, "XDG_CONFIG_HOME");
  if (folder.empty()) {
    const auto home = value_of(environment, "HOME");
    if (home.empty()) return {};
    folder = home + "/.config";
  }
  return folder + "/gitopsctl/contexts.json";
}

Result<Contexts> read_contexts(const std::string& path) {
  if (path.empty()) return Contexts{};
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) {
    // A file that cannot be read is not absent: another one would take its place.
    if (errno == ENOENT || errno == ENOTDIR) return Contexts{};
    return fail(ErrorCode::unavailable, path + " cannot be read: " + std::strerror(errno));
  }
  if ((about.st_mode & kOthers) != 0) {
    return fail(ErrorCode::forbidden,
                path + " holds tokens, but others may read it; chmod 600 " + path);
  }
  const auto text = read_small_file(path);
  if (!text) return fail(path, text.error());
  auto contexts = parse_contexts(*text);
  if (!contexts) return fail(path, contexts.error());
  return contexts;
}

Result<void> write_contexts(const std::string& path, const Contexts& contexts) {
  make_folder_of(path);
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  if (auto made = create_private_file(fresh, contexts_text(contexts)); !made) return made;
  if (::rename(fresh.c_str(), path.c_str()) == 0) return {};
  return fail(ErrorCode::unavailable, path + " cannot be written: " + std::strerror(errno));
}

Result<void> update_contexts(const std::string& path,
                             const std::function<Result<void>(Contexts&)>& change) {
  make_folder_of(path);
  const Lock lock(path);
  if (!lock.is_open()) {
    return fail(ErrorCode::unavailable, path + " cannot be written: " + std::strerror(errno));
  }
  auto contexts = read_contexts(path);
  if (!contexts) return std::unexpected(contexts.error());
  if (auto changed = change(*contexts); !changed) return changed;
  return write_contexts(path, *contexts);
}

}  // namespace gitops::ctl
