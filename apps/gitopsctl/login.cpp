#include "gitopsctl/login.hpp"

#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <termios.h>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/core/json_value.hpp"
#include "common/core/small_file.hpp"
#include "common/http/url.hpp"
#include "gitopsctl/contexts.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

constexpr std::size_t kMaxToken = 16 * 1024;

struct LoginSettings {
  std::string url;
  std::string name;
  std::string token_file;
  std::string ca_file;
  bool insecure = false;
  cli::LoopOptions loop;
};

constexpr int kEndings[] = {SIGINT, SIGQUIT, SIGTERM};
termios kept_terminal;  // for the handler of a signal

// Gives the terminal its echo back, and ends the process as the signal does.
void restore_terminal(int number) {
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &kept_terminal);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Switches the echo of a terminal off while it lives, also when a signal ends the process.
class Silence {
 public:
  Silence() {
    is_terminal_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!is_terminal_) return;
    kept_terminal = before_;
    for (const int number : kEndings) std::signal(number, restore_terminal);
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() {
    if (!is_terminal_) return;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
    for (const int number : kEndings) std::signal(number, SIG_DFL);
  }
  [[nodiscard]] bool is_terminal() const { return is_terminal_; }

 private:
  termios before_{};
  bool is_terminal_ = false;
};

// Reads the first line of standard input; asks for it on a terminal.
Secret read_token(cli::Console& console) {
  const Silence silence;
  if (silence.is_terminal()) console.err << "API key (it is not shown): " << std::flush;
  std::string line;
  for (char c = 0; line.size() < kMaxToken && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) {
    line += c;
  }
  if (silence.is_terminal()) console.err << '\n';
  while (line.ends_with('\r') || line.ends_with(' ')) line.pop_back();
  return Secret(std::move(line));
}

int report(cli::Console& console, const Error& error) {
  console.err << failure_text(error);
  return exit_code_of(error);
}

std::string user_text(const Json& me) {
  const auto user = text_at(me, {"name"});
  const auto runtime = text_at(me, {"runtimeName"});
  return (user.empty() ? "runtime " + runtime : user) + " of account " +
         text_at(me, {"activeAccount", "name"});
}

Task<Result<Json>> ask_me(Server& server) {
  auto data = co_await server.ask(kMe.text, Json::object());
  if (!data) co_return data;
  const Json& me = at(*data, {"me"});
  if (!me.is_object()) co_return fail(ErrorCode::protocol, "the answer does not say who asks");
  co_return Json(me);
}

// A file of a context is read by later commands, in any folder.
std::string from_any_folder(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return path.empty() || error ? path : absolute.string();
}

// Whether a context has another control plane than this URL, such as one on another port.
bool is_of_another(const Context& context, const http::Url& url) {
  const auto known = http::parse_url(context.url);
  return !known || known->host_header() != url.host_header() ||
         http::join_target(*known, "/") != http::join_target(url, "/");
}

// Checks the key, then stores the context and makes it the current one.
int log_in(const LoginSettings& settings, const cli::Environment& environment,
           cli::Console& console) {
  const auto url = http::parse_url(settings.url);
  if (!url || (url->scheme != "http" && url->scheme != "https")) {
    return report(console,
                  usage_error("URL: " + (url ? "not http or https" : url.error().message)).error());
  }
  const auto path = contexts_path(environment);
  const auto before = read_contexts(path);
  if (!before) return report(console, usage_error(before.error().message).error());
  // Its key was shown once, and may be stored nowhere else.
  const Context* const there = settings.name.empty() ? before->find(url->host) : nullptr;
  if (there != nullptr && is_of_another(*there, *url)) {
    return report(console, usage_error("context " + there->name +
                                       " is of another control plane; give this one another name "
                                       "with --name")
                               .error());
  }
  if (path.empty()) {
    return report(console, usage_error("HOME is not set, and GITOPSCTL_CONTEXTS neither").error());
  }
  Context context{.name = settings.name.empty() ? url->host : settings.name,
                  .url = settings.url,
                  .token_file = from_any_folder(settings.token_file),
                  .ca_file = from_any_folder(settings.ca_file),
                  .insecure = settings.insecure};
  Context tried = context;
  if (settings.token_file.empty()) {
    context.token = read_token(console);
    tried.token = context.token;
  } else {
    auto text = read_small_file(settings.token_file, kMaxToken);
    if (!text) {
      return report(console, usage_error(settings.token_file + " " + text.error().message).error());
    }
    while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
    tried.token = Secret(std::move(*text));
  }
  if (tried.token.empty()) return report(console, usage_error("no API key was given").error());
  return cli::run_on_loop(settings.loop, console, [&](const cli::LoopContext& at) -> Task<int> {
    Server server(at, environment, tried, settings.loop.timeout);
    const auto me = co_await ask_me(server);
    if (!me) co_return report(console, me.error());
    // Read again: another login may have come between, while the key was asked for.
    const auto written = update_contexts(path, [&](Contexts& contexts) -> Result<void> {
      contexts.put(context);
      contexts.current = context.name;
      return {};
    });
    if (!written) co_return report(console, written.error());
    console.out << "Logged in as " << user_text(*me) << "; context " << cli::printable(context.name)
                << " is the current one.\n";
    co_return cli::kDone;
  });
}

cli::Command login() {
  const auto settings = std::make_shared<LoginSettings>();
  return {
      .name = "login",
      .summary = "Log in to a control plane with an API key, and remember it as a context",
      .description =
          "Reads the key from a prompt that does not show it, or from standard input. It is stored "
          "in\n"
          "$GITOPSCTL_CONTEXTS, or ~/.config/gitopsctl/contexts.json, with mode 0600. With "
          "--token-file\n"
          "the key stays in that file, which each command reads. Nothing is stored unless the "
          "control\n"
          "plane accepts the key. The console makes keys: Access, Tokens.\n\n"
          "Examples:\n"
          "  gitopsctl login https://gitops.example.com\n"
          "  gitopsctl login https://gitops.example.com --name prod --token-file "
          "~/.secrets/gitops\n"
          "  pass show gitops | gitopsctl login https://gitops.example.com\n",
      .operands = {{.name = "URL",
                    .help = "Base URL of the control plane",
                    .target = &settings->url}},
      .bind =
          [settings](ConfigReader& reader) {
            const auto file = [&](std::string_view flag, std::string_view help,
                                  std::string& target) {
              reader.add({.flag = flag, .help = help}, "FILE", "",
                         [&target](const std::string& text) {
                           target = text;
                           return std::string();
                         });
            };
            reader.group("Command");
            reader.add({.flag = "name", .help = "Name of the context; empty means the URL's host"},
                       settings->name);
            file("token-file", "File with the API key, which stays there", settings->token_file);
            file("ca-file",
                 "PEM file with the certificate authorities of the server, instead of the system's",
                 settings->ca_file);
            reader.add({.flag = "insecure", .help = "Accept any certificate of the server"},
                       settings->insecure);
            settings->loop.add_to(reader);
          },
      .run = [settings](const cli::Environment& environment,
                        cli::Console& console) { return log_in(*settings, environment, console); }};
}

cli::Command whoami() {
  const Sheet sheet{
      .schema = "gitopsctl/user/v1",
      .columns = {text_column("USER", {"name"}), text_column("EMAIL", {"email"}),
                  text_column("ACCOUNT", {"activeAccount", "name"}),
                  own_column("ADMIN",
                             [](const Json& me) -> std::string {
                               for (const Json& id : at(me, {"activeAccount", "admins"})) {
                                 if (id == at(me, {"id"})) return "yes";
                               }
                               return "no";
                             }),
                  text_column("ID", {"id"}, true)},
      .name = [](const Json& me) { return text_at(me, {"name"}); }};
  return noun_command({.name = "whoami",
                       .summary = "Show the user and the account of the current context",
                       .description = "Examples:\n"
                                      "  gitopsctl whoami\n"
                                      "  gitopsctl whoami --context prod -o json\n",
                       .work = [sheet](Call& call) -> Task<Result<int>> {
                         const auto me = co_await ask_me(call.server);
                         if (!me) co_return std::unexpected(me.error());
                         call.console.out << render_item(sheet, *me, call.look);
                         co_return cli::kDone;
                       }});
}

struct ContextSettings {
  std::string name;
  Form form = Form::table;
};

Json shown(const Contexts& contexts, const Context& context) {
  return {{"name", context.name},
          {"url", context.url},
          {"current", context.name == contexts.current},
          {"token", context.token_file.empty() ? "stored" : context.token_file}};
}

cli::Command list() {
  const auto settings = std::make_shared<ContextSettings>();
  const Sheet sheet{
      .schema = "gitopsctl/contexts/v1",
      .columns = {own_column("CURRENT",
                             [](const Json& item) {
                               return std::string(at(item, {"current"}) == true ? "*" : " ");
                             }),
                  text_column("NAME", {"name"}), text_column("URL", {"url"}),
                  text_column("TOKEN", {"token"})},
      .name = [](const Json& item) { return text_at(item, {"name"}); }};
  return {.name = "context list",
          .summary = "List the control planes that you are logged in to",
          .description = "Examples:\n  gitopsctl context list\n",
          .bind =
              [settings](ConfigReader& reader) {
                reader.group("Output");
                add_form(reader, settings->form);
              },
          .run =
              [settings, sheet](const cli::Environment& environment, cli::Console& console) {
                const auto contexts = read_contexts(contexts_path(environment));
                if (!contexts)
                  return report(console, usage_error(contexts.error().message).error());
                std::vector<Json> items;
                for (const Context& context : contexts->all) {
                  items.push_back(shown(*contexts, context));
                }
                console.out << render_list(sheet, items,
                                           {.form = settings->form,
                                            .colour = console.colour,
                                            .width = console.width,
                                            .now = wall_now()});
                return int{cli::kDone};
              }};
}

// Changes the file of contexts by `change`, which returns whether there is that context.
cli::Command changing(std::string name, std::string summary, std::string done,
                      std::function<bool(Contexts&, const std::string&)> change) {
  const auto settings = std::make_shared<ContextSettings>();
  return {.name = name,
          .summary = std::move(summary),
          .description = "Examples:\n  gitopsctl " + name + " prod\n",
          .operands = {{.name = "CONTEXT", .help = "Its name", .target = &settings->name}},
          .run = [settings, done = std::move(done), change = std::move(change)](
                     const cli::Environment& environment, cli::Console& console) {
            const auto path = contexts_path(environment);
            const auto contexts = read_contexts(path);
            if (!contexts) return report(console, usage_error(contexts.error().message).error());
            if (contexts->find(settings->name) == nullptr) {
              return report(console, not_found("context", settings->name).error());
            }
            const auto written = update_contexts(path, [&](Contexts& fresh) -> Result<void> {
              if (!change(fresh, settings->name)) return not_found("context", settings->name);
              return {};
            });
            if (!written) return report(console, written.error());
            console.out << "Context " << cli::printable(settings->name) << done << '\n';
            return int{cli::kDone};
          }};
}

}  // namespace

std::vector<cli::Command> login_commands() {
  return {login(), whoami()};
}

std::vector<cli::Command> context_commands() {
  return {
      list(),
      changing("context use", "Make a context the current one", " is the current one.",
               [](Contexts& contexts, const std::string& name) {
                 if (contexts.find(name) == nullptr) return false;
                 contexts.current = name;
                 return true;
               }),
      changing("context delete", "Forget a context, with its key",
               " is deleted. Its API key is still valid.",
               [](Contexts& contexts, const std::string& name) { return contexts.remove(name); })};
}

}  // namespace gitops::ctl
