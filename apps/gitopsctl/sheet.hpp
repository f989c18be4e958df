#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/cli/table.hpp"
#include "common/core/config_reader.hpp"
#include "common/core/time.hpp"

// Objects of a server as tables, JSON, YAML and names. Pure. All texts of a server are printed
// without control characters.
namespace gitops::ctl {

using Json = nlohmann::json;
// Member names from the outside in.
using Path = std::vector<std::string_view>;

enum class Form { table, wide, json, yaml, name };
// Adds -o, --output.
void add_form(ConfigReader& reader, Form& form);

struct Column {
  std::string header;  // in capitals
  std::function<cli::Cell(const Json& item, WallTime now)> cell;
  bool is_wide = false;  // shown by -o wide alone
};

// The form of the objects of one kind.
struct Sheet {
  std::string schema;  // of JSON and YAML: "gitopsctl/apps/v1"
  std::vector<Column> columns;
  std::function<std::string(const Json& item)> name;  // for -o name
};

// A column with the text at a path, "-" when there is none.
Column text_column(std::string header, Path path, bool is_wide = false);
// The same for a state: "OUT_OF_SYNC" is shown as OutOfSync, with its colour.
Column state_column(std::string header, Path path);
// A column with the age of the time at a path.
Column age_column(std::string header, Path path, bool is_wide = false);
// A column that a function of the item fills.
Column own_column(std::string header, std::function<std::string(const Json& item)> text,
                  bool is_wide = false);

const Json& at(const Json& json, const Path& path);
// The text or number at a path, safe for terminals; empty when there is none.
std::string text_at(const Json& json, const Path& path);
// "OUT_OF_SYNC" → "OutOfSync", in the colour of its meaning; "Unknown" when it is empty.
cli::Cell state_cell(std::string_view state);
// The time since `then` as kubectl writes it: "42s", "5m30s", "3h", "2d"; "<unknown>" when `then`
// is no RFC 3339 time, "0s" for a time ahead.
std::string age(std::string_view then, WallTime now);

struct Look {
  Form form = Form::table;
  bool colour = false;
  std::size_t width = 0;  // of the terminal; 0: unlimited
  WallTime now = {};
};
// Returns a list. JSON: {"schema":…,"items":[…]}.
std::string render_list(const Sheet& sheet, const std::vector<Json>& items, const Look& look);
// Returns one object. JSON: its members and "schema".
std::string render_item(const Sheet& sheet, const Json& item, const Look& look);
// The lines of a table, the first one with the headers.
std::vector<std::string> table_lines(const Sheet& sheet, const std::vector<Json>& items,
                                     const Look& look);
// Returns JSON or YAML.
std::string render_document(const Json& document, Form form);

}  // namespace gitops::ctl
