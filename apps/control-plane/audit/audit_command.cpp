#include "control-plane/audit/audit_command.hpp"

#include <memory>
#include <utility>

#include "common/cli/table.hpp"
#include "common/core/encoding.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/audit/audit_store.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::int64_t kCacheBytes = 8LL * 1024 * 1024;
constexpr std::string_view kNobody = "(nobody)";  // requests that no account is known of
constexpr store::Statement kAccounts{
    .name = "audit.accounts",
    .sql = "SELECT number, name FROM account UNION ALL SELECT 0, '' ORDER BY 1"};

Result<std::unique_ptr<store::Connection>> open(const store::Location& location) {
  if (location.engine == store::Engine::sqlite) {
    return store::open_sqlite(location.path, store::Access::read_only, kCacheBytes);
  }
  return store::open_postgres(location, "control-plane-audit");
}

// Returns the text about every account, and whether all chains are whole.
Result<std::pair<std::string, bool>> verify_all(const store::Location& location) {
  const auto connection = open(location);
  if (!connection) return std::unexpected(connection.error());
  const auto accounts = (*connection)->run(kAccounts);
  if (!accounts) return std::unexpected(accounts.error());
  cli::Table table;
  table.add({{"ACCOUNT"}, {"ENTRIES"}, {"FROM"}, {"TO"}, {"STATE"}, {"DIGEST OF THE LAST ENTRY"}});
  bool is_whole = true;
  for (std::size_t row = 0; row < accounts->size(); ++row) {
    const auto number = accounts->number(row, 0);
    const auto verdict = verify_audit(**connection, number);
    if (!verdict) return std::unexpected(verdict.error());
    is_whole = is_whole && verdict->broken.empty();
    table.add({{number == 0 ? std::string(kNobody) : cli::printable(accounts->text(row, 1))},
               {std::to_string(verdict->entries)},
               {std::to_string(verdict->first_no)},
               {std::to_string(verdict->last_no)},
               {verdict->broken.empty() ? "whole" : verdict->broken},
               {hex_encode(verdict->digest)}});
  }
  return std::pair(table.text(0, false), is_whole);
}

int run_verify(const store::Location& location, cli::Console& console) {
  const auto verified = verify_all(location);
  if (!verified) {
    console.err << "control-plane: " << cli::printable(verified.error().message) << '\n';
    return cli::kNotKnown;
  }
  console.out << verified->first;
  return verified->second ? cli::kDone : cli::kFailed;
}

}  // namespace

std::optional<int> run_audit_command(const AddLocation& add_location,
                                     const std::vector<std::string>& arguments,
                                     const cli::Environment& environment, cli::Console& console) {
  if (arguments.empty() || arguments.front() != "audit") return {};
  const auto location = std::make_shared<store::Location>();
  const cli::Program program{
      .name = "control-plane audit",
      .summary = "the audit log",
      .commands = {
          {.name = "verify",
           .summary = "Compute the digests of all entries again, while control-plane runs or not",
           .description = "Finds entries that were changed, removed or added between others, and "
                          "exits with 1\n"
                          "then. Note the digests of the last entries: when one of them is not in "
                          "the log later,\n"
                          "its end was cut off and recreated.\n",
           .bind = [location,
                    add_location](ConfigReader& reader) { add_location(reader, *location); },
           .run = [location](const cli::Environment&,
                             cli::Console& at) { return run_verify(*location, at); }}}};
  return cli::run(program, {arguments.begin() + 1, arguments.end()}, environment, console);
}

}  // namespace gitops::control_plane_server
