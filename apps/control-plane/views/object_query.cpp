#include "control-plane/views/object_query.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "control-plane/storage/body_row.hpp"
#include "control-plane/storage/object_row.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Params;
using store::Rows;
using store::Statement;

// Columns of an object before those of its body: id and kObjectColumns.
constexpr std::size_t kStateColumns = 30;
// Rows of one round when `accepts` may refuse some.
constexpr std::size_t kRound = 500;

constexpr std::string_view kSelect = "SELECT o.id, ";
constexpr std::string_view kFrom = " FROM object o";
constexpr std::string_view kWithBody = ", b.codec, b.size, b.packed";
constexpr std::string_view kFromWithBody = " FROM object o LEFT JOIN body b ON b.object = o.id";
// A set of texts is one parameter: each text between two line feeds, which no name contains. A set of states is a number
// with a bit for each. The statement's text is therefore the same for any number of values. These columns are those of
// the index object_name, so rows that do not match are refused without a look at the table; the conditions that refuse
// most come first.
constexpr std::string_view kListWhere =
    " WHERE o.account = $1 AND o.kind = $2 AND "
    "($7 = '' OR strpos($7, '\n' || o.name || '\n') > 0) AND "
    "($8 = '' OR strpos(o.name, $8) > 0) AND "
    "($11 = 0 OR ($11 >> CAST(o.health AS INTEGER)) & 1 <> 0) AND "
    "($10 = 0 OR ($10 >> CAST(o.sync AS INTEGER)) & 1 <> 0) AND "
    "($12 = 0 OR ($12 >> CAST(o.phase AS INTEGER)) & 1 <> 0) AND "
    "($9 = '' OR strpos($9, '\n' || o.namespace || '\n') > 0) AND "
    "($6 = '' OR strpos($6, '\n' || o.runtime || '\n') > 0) AND "
    "(o.presence <> 1 OR $4 = 1) AND ($4 = 0 OR o.presence <> 0) AND "
    "($3 = -1 OR o.origin = $3) AND "
    "($5 = '' OR strpos($5, '\n' || o.api_group || '\n') > 0) AND "
    "($13 = '' OR strpos($13, '\n' || o.entity || '\n') > 0) AND "
    "($14 = '' OR strpos($14, '\n' || o.entity || '\n') = 0)";
// Conditions about columns that the index does not have.
constexpr std::string_view kOtherWhere =
    " AND ($19 = '' OR strpos($19, '\n' || o.version || '\n') > 0) AND "
    "($20 = '' OR strpos($20, '\n' || o.destination || '\n') > 0) AND "
    "($21 = '' OR EXISTS (SELECT 1 FROM label l WHERE l.object = o.id AND "
    "(strpos($21, '\n' || l.key || '\n') > 0 OR "
    "strpos($21, '\n' || l.key || '=' || l.value || '\n') > 0)))";
constexpr std::string_view kForward =
    " AND (o.name, o.id) > ($15, $16) AND o.name <= $18 ORDER BY o.name, o.id LIMIT $17";
constexpr std::string_view kBackward =
    " AND (o.name, o.id) < ($15, $16) AND o.name >= $18 ORDER BY o.name DESC, o.id DESC LIMIT $17";
constexpr std::string_view kInOrder = " ORDER BY o.name, o.id";
constexpr std::string_view kInReverse = " ORDER BY o.name DESC, o.id DESC";
// The ids of a page are found in the index alone, which PostgreSQL needs to be told.
constexpr std::string_view kFromIndex = " FROM (SELECT o.id AS found FROM object o";
constexpr std::string_view kFoundObjects = ") f JOIN object o ON o.id = f.found";
constexpr std::string_view kFoundBodies =
    ") f JOIN object o ON o.id = f.found LEFT JOIN body b ON b.object = o.id";
// A text that sorts after every name: the last code point of Unicode.
constexpr std::string_view kLastName = "\xf4\x8f\xbf\xbf";

constexpr std::string_view kByName =
    " WHERE o.account = $1 AND o.kind = $2 AND o.name = $3 AND ($4 = '' OR o.runtime = $4) AND "
    "($5 = '' OR o.namespace = $5) AND ($6 = -1 OR o.origin = $6) AND o.api_group = $7 AND "
    "o.presence <> 1 ORDER BY o.presence, o.id LIMIT 1";
// The kind is kept from the indexes: SQLite would take the one of lists.
constexpr std::string_view kByUid =
    " WHERE o.account = $1 AND o.uid = $2 AND (o.kind || '') = $3 ORDER BY o.presence, o.id "
    "LIMIT 1";
// A block of ids, filled up with 0, which no object has.
constexpr std::size_t kIdBlock = 16;
constexpr std::string_view kByIds =
    " WHERE o.account = $1 AND o.id IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, "
    "$15, $16, $17)";
constexpr std::string_view kByManager =
    " WHERE o.account = $1 AND o.runtime = $2 AND o.manager_namespace = $3 AND "
    "o.manager_name = $4 AND ($5 = '' OR o.manager_uid = $5) AND "
    "($6 = '' OR strpos($6, '\n' || o.kind || '\n') > 0) AND "
    "($7 = -1 OR o.origin = $7) AND o.presence <> 1 ORDER BY o.kind, o.name, o.id LIMIT $8";

// A statement without bodies, and the same with them.
struct Pair {
  Statement plain;
  Statement with_body;

  [[nodiscard]] const Statement& of(BodyUse bodies) const {
    return bodies == BodyUse::read ? with_body : plain;
  }
};

constexpr Pair kListForward{
    .plain = {.name = "views.list",
              .sql = store::joined<kSelect, kObjectColumns, kFromIndex, kListWhere, kForward,
                                   kFoundObjects, kInOrder>,
              .is_planned_by_values = true},
    .with_body = {.name = "views.list_bodies",
                  .sql = store::joined<kSelect, kObjectColumns, kWithBody, kFromIndex, kListWhere,
                                       kForward, kFoundBodies, kInOrder>,
                  .is_planned_by_values = true}};
constexpr Pair kListBackward{
    .plain = {.name = "views.list_back",
              .sql = store::joined<kSelect, kObjectColumns, kFromIndex, kListWhere, kBackward,
                                   kFoundObjects, kInReverse>,
              .is_planned_by_values = true},
    .with_body = {.name = "views.list_back_bodies",
                  .sql = store::joined<kSelect, kObjectColumns, kWithBody, kFromIndex, kListWhere,
                                       kBackward, kFoundBodies, kInReverse>,
                  .is_planned_by_values = true}};
// The same with all conditions.
constexpr Pair kSearchForward{
    .plain = {.name = "views.search",
              .sql =
                  store::joined<kSelect, kObjectColumns, kFrom, kListWhere, kOtherWhere, kForward>,
              .is_planned_by_values = true},
    .with_body = {.name = "views.search_bodies",
                  .sql = store::joined<kSelect, kObjectColumns, kWithBody, kFromWithBody,
                                       kListWhere, kOtherWhere, kForward>,
                  .is_planned_by_values = true}};
constexpr Pair kSearchBackward{
    .plain = {.name = "views.search_back",
              .sql =
                  store::joined<kSelect, kObjectColumns, kFrom, kListWhere, kOtherWhere, kBackward>,
              .is_planned_by_values = true},
    .with_body = {.name = "views.search_back_bodies",
                  .sql = store::joined<kSelect, kObjectColumns, kWithBody, kFromWithBody,
                                       kListWhere, kOtherWhere, kBackward>,
                  .is_planned_by_values = true}};
constexpr Pair kFind{
    .plain = {.name = "views.find", .sql = store::joined<kSelect, kObjectColumns, kFrom, kByName>},
    .with_body = {
        .name = "views.find_body",
        .sql = store::joined<kSelect, kObjectColumns, kWithBody, kFromWithBody, kByName>}};
constexpr Pair kFindUid{
    .plain = {.name = "views.find_uid",
              .sql = store::joined<kSelect, kObjectColumns, kFrom, kByUid>},
    .with_body = {.name = "views.find_uid_body",
                  .sql = store::joined<kSelect, kObjectColumns, kWithBody, kFromWithBody, kByUid>}};
constexpr Pair kFindIds{
    .plain = {.name = "views.find_ids",
              .sql = store::joined<kSelect, kObjectColumns, kFrom, kByIds>},
    .with_body = {.name = "views.find_ids_bodies",
                  .sql = store::joined<kSelect, kObjectColumns, kWithBody, kFromWithBody, kByIds>}};
constexpr Pair kChildren{
    .plain = {.name = "views.children",
              .sql = store::joined<kSelect, kObjectColumns, kFrom, kByManager>},
    .with_body = {
        .name = "views.children_bodies",
        .sql = store::joined<kSelect, kObjectColumns, kWithBody, kFromWithBody, kByManager>}};
constexpr Statement kReporters{
    .name = "views.resource_reporters",
    .sql =
        "SELECT DISTINCT runtime FROM reporter WHERE account = $1 AND "
        "(name = 'resource' OR substr(name, 1, 9) = 'resource/') ORDER BY runtime"};

constexpr std::array kObjectStatements{kListForward.plain,
                                       kListForward.with_body,
                                       kListBackward.plain,
                                       kListBackward.with_body,
                                       kSearchForward.plain,
                                       kSearchForward.with_body,
                                       kSearchBackward.plain,
                                       kSearchBackward.with_body,
                                       kFind.plain,
                                       kFind.with_body,
                                       kFindUid.plain,
                                       kFindUid.with_body,
                                       kFindIds.plain,
                                       kFindIds.with_body,
                                       kChildren.plain,
                                       kChildren.with_body,
                                       kReporters};

std::string set_of(const std::vector<std::string>& texts) {
  std::string set;
  for (const auto& text : texts) {
    if (text.find_first_of(std::string_view("\n\0", 2)) != std::string::npos) continue;
    set += set.empty() ? "\n" : "";
    set += text + '\n';
  }
  // None of these values can match, so the condition matches no row.
  return set.empty() && !texts.empty() ? "\n" : set;
}

std::string without_nul(std::string_view text) {
  return std::string(text.substr(0, text.find('\0')));
}

// The rows that a page may hold, in the direction of its window: those behind `from` whose name is not beyond `last`.
struct NameRange {
  SortKey from;
  std::string last;
};
NameRange range_of(const std::vector<std::string>& names, const PageWindow& window) {
  const auto [least, greatest] = std::ranges::minmax_element(names);
  const std::string lowest = names.empty() ? "" : without_nul(*least);
  const std::string highest = names.empty() ? std::string(kLastName) : without_nul(*greatest);
  constexpr auto kMaxId = std::numeric_limits<std::int64_t>::max();
  NameRange range{.from = {.numbers = {-1}, .text = lowest}, .last = highest};
  if (window.is_backward) range = {.from = {.numbers = {kMaxId}, .text = highest}, .last = lowest};
  if (!window.from) return range;
  const bool is_further = window.is_backward ? is_before(*window.from, range.from)
                                             : is_before(range.from, *window.from);
  if (is_further) range.from = *window.from;
  return range;
}

template <class Enum>
std::int64_t bits_of(const std::vector<Enum>& values) {
  std::int64_t bits = 0;
  for (const auto value : values) bits |= std::int64_t{1} << static_cast<int>(value);
  return bits;
}

std::int64_t number_of(std::optional<Origin> origin) {
  return origin ? static_cast<std::int64_t>(*origin) : -1;
}

ObjectRow row_of(const Rows& rows, std::size_t row, BodyUse bodies) {
  ObjectRow found{.state = object_state(rows, row)};
  if (bodies == BodyUse::skip) return found;
  // An object with a damaged body is shown without it, so that the rest of the page is still served.
  if (auto body = body_of_row(rows, row, kStateColumns)) found.body = std::move(*body);
  return found;
}

Result<std::vector<ObjectRow>> rows_of(const Result<Rows>& rows, BodyUse bodies) {
  if (!rows) return std::unexpected(rows.error());
  std::vector<ObjectRow> found;
  found.reserve(rows->size());
  for (std::size_t row = 0; row < rows->size(); ++row) found.push_back(row_of(*rows, row, bodies));
  return found;
}

Result<std::optional<ObjectRow>> first_of(const Result<Rows>& rows, BodyUse bodies) {
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::optional<ObjectRow>();
  return std::optional<ObjectRow>(row_of(*rows, 0, bodies));
}

}  // namespace

SortKey sort_key_of(const ObjectState& state) {
  return {.numbers = {state.id}, .text = state.key.name};
}

Result<std::vector<ObjectRow>> list_objects(Connection& connection, std::int64_t account,
                                            const ObjectFilter& filter, const PageWindow& window,
                                            BodyUse bodies) {
  const auto groups = set_of(filter.groups);
  const auto versions = set_of(filter.versions);
  const auto runtimes = set_of(filter.runtimes);
  const auto names = set_of(filter.names);
  const auto name_part = without_nul(filter.name_part);
  const auto namespaces = set_of(filter.namespaces);
  const auto destinations = set_of(filter.destinations);
  const auto entities = set_of(filter.entities);
  const auto other_entities = set_of(filter.other_entities);
  const auto labels = set_of(filter.labels);
  const auto range = range_of(filter.names, window);
  Params params{account,
                filter.kind,
                number_of(filter.origin),
                static_cast<int>(filter.is_inactive),
                groups,
                runtimes,
                names,
                name_part,
                namespaces,
                bits_of(filter.syncs),
                bits_of(filter.healths),
                bits_of(filter.phases),
                entities,
                other_entities,
                range.from.text,
                range.from.numbers.at(0),
                window.limit,
                range.last};
  if (versions.empty() && destinations.empty() && labels.empty()) {
    const auto& list = window.is_backward ? kListBackward : kListForward;
    return rows_of(connection.run(list.of(bodies), params), bodies);
  }
  for (const auto* set : {&versions, &destinations, &labels}) params.emplace_back(*set);
  const auto& search = window.is_backward ? kSearchBackward : kSearchForward;
  return rows_of(connection.run(search.of(bodies), params), bodies);
}

Result<std::optional<ObjectRow>> find_object(Connection& connection, std::int64_t account,
                                             const ObjectName& name, BodyUse bodies) {
  const auto wanted = without_nul(name.name);
  const auto runtime = without_nul(name.runtime);
  const auto wanted_namespace = without_nul(name.object_namespace);
  return first_of(
      connection.run(kFind.of(bodies), {account, name.kind, wanted, runtime, wanted_namespace,
                                        number_of(name.origin), name.group}),
      bodies);
}

Result<std::vector<ObjectRow>> objects_of_ids(Connection& connection, std::int64_t account,
                                              std::span<const std::int64_t> ids, BodyUse bodies) {
  std::vector<ObjectRow> found;
  while (!ids.empty()) {
    const auto block = ids.first(std::min(kIdBlock, ids.size()));
    ids = ids.subspan(block.size());
    Params params{account};
    for (const auto id : block) params.emplace_back(id);
    while (params.size() <= kIdBlock) params.emplace_back(0);
    auto rows = rows_of(connection.run(kFindIds.of(bodies), params), bodies);
    if (!rows) return rows;
    std::ranges::move(*rows, std::back_inserter(found));
  }
  return found;
}

Result<std::optional<ObjectRow>> find_object_by_uid(Connection& connection, std::int64_t account,
                                                    std::string_view kind, std::string_view uid,
                                                    BodyUse bodies) {
  const auto wanted = without_nul(uid);
  if (wanted.empty()) return std::optional<ObjectRow>();
  return first_of(connection.run(kFindUid.of(bodies), {account, wanted, kind}), bodies);
}

Result<std::vector<ObjectRow>> list_children(Connection& connection, std::int64_t account,
                                             const Children& children, BodyUse bodies) {
  const auto kinds = set_of(children.kinds);
  return rows_of(
      connection.run(kChildren.of(bodies),
                     {account, children.runtime, children.manager_namespace, children.manager_name,
                      children.manager_uid, kinds, number_of(children.origin), children.limit}),
      bodies);
}

Result<std::vector<std::string>> runtimes_with_resource_reporter(Connection& connection,
                                                                 std::int64_t account) {
  const auto rows = connection.run(kReporters, {account});
  if (!rows) return std::unexpected(rows.error());
  std::vector<std::string> runtimes;
  for (std::size_t row = 0; row < rows->size(); ++row) runtimes.push_back(rows->string(row, 0));
  return runtimes;
}

void ParsedBody::read(const std::optional<ObjectBody>& body) {
  static const ObjectBody kNone;
  texts_ = body ? &*body : &kNone;
  const auto parsed = [](JsonParser& parser, const std::string& text) {
    if (text.empty()) return JsonView();
    const auto view = parser.parse(text, "a body");
    return view ? *view : JsonView();
  };
  live_ = parsed(live_parser_, texts_->live);
  source_ = parsed(source_parser_, texts_->source);
  errors_ = parsed(errors_parser_, texts_->errors);
}

Result<std::string> object_slice(Connection& connection, std::int64_t account,
                                 const ObjectList& list) {
  std::vector<PageItem> items;
  PageWindow round = list.window;
  ParsedBody parsed;
  std::optional<SortKey> read_to;
  std::size_t read = 0;
  const auto wanted = list.window.limit + 1;
  while (items.size() < wanted && !read_to) {
    round.limit = list.accepts ? std::min(kRound, list.max_read - read) : wanted;
    const auto rows = list_objects(connection, account, list.filter, round, list.bodies);
    if (!rows) return std::unexpected(rows.error());
    for (const auto& row : *rows) {
      if (items.size() == wanted) break;
      parsed.read(row.body);
      if (list.accepts && !list.accepts(row.state, parsed)) continue;
      auto& item = items.emplace_back();
      item.key = sort_key_of(row.state);
      list.append(item.node, row.state, parsed);
    }
    if (rows->size() < round.limit) break;
    round.from = sort_key_of(rows->back().state);
    read += rows->size();
    if (items.size() < wanted && read >= list.max_read) read_to = round.from;
  }
  return slice_json(list.window, std::move(items), read_to);
}

std::span<const Statement> object_statements() {
  return kObjectStatements;
}

}  // namespace gitops::control_plane_server
