#include "gitopsctl/sheet.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/yaml_text.hpp"
#include "gitopsctl/safe_json.hpp"

namespace gitops::ctl {

namespace {

using cli::Cell;
using cli::Tone;

Tone tone_of(std::string_view state) {
  for (const std::string_view good :
       {"HEALTHY", "SYNCED", "SUCCEEDED", "SUCCESSFUL", "COMPLETED", "DONE", "ALLOWED", "ONLINE"}) {
    if (state == good) return Tone::good;
  }
  for (const std::string_view bad :
       {"DEGRADED", "FAILED", "ERROR", "MISSING", "REFUSED", "DENIED", "OFFLINE"}) {
    if (state == bad) return Tone::bad;
  }
  for (const std::string_view busy : {"OUT_OF_SYNC", "PROGRESSING", "SUSPENDED", "RUNNING",
                                      "SYNCING", "TERMINATING", "UNKNOWN"}) {
    if (state == busy) return Tone::doubtful;
  }
  return Tone::plain;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

}  // namespace

void add_form(ConfigReader& reader, Form& form) {
  reader.add_choice({.flag = "output", .help = "Output format", .letter = 'o'}, form,
                    {"table", "wide", "json", "yaml", "name"});
}

const Json& at(const Json& json, const Path& path) {
  static const Json kNull;
  const Json* value = &json;
  for (const std::string_view name : path) {
    const auto found = value->is_object() ? value->find(name) : value->end();
    if (!value->is_object() || found == value->end()) return kNull;
    value = &*found;
  }
  return *value;
}

std::string text_at(const Json& json, const Path& path) {
  const Json& value = at(json, path);
  if (value.is_string()) return cli::printable(value.get_ref<const std::string&>());
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  return value.is_number() ? value.dump() : std::string();
}

Cell state_cell(std::string_view state) {
  if (state.empty()) return {"Unknown", Tone::doubtful};
  const Tone tone = tone_of(upper(state));
  std::string text = cli::printable(state);
  if (upper(text) != text) return {text, tone};  // words of Argo stay as they are
  std::string out;
  bool is_first = true;
  for (const char c : text) {
    if (c == '_') {
      is_first = true;
      continue;
    }
    out += is_first || c < 'A' || c > 'Z' ? c : static_cast<char>(c - 'A' + 'a');
    is_first = false;
  }
  return {out, tone};
}

std::string age(std::string_view then, WallTime now) {
  using namespace std::chrono;
  const auto time = parse_rfc3339(then);
  if (!time) return "<unknown>";
  const auto seconds =
      std::max<std::int64_t>(0, duration_cast<std::chrono::seconds>(now - *time).count());
  const auto minutes = seconds / 60;
  const auto hours = minutes / 60;
  const auto days = hours / 24;
  const auto two = [](std::int64_t big, const char* unit, std::int64_t small, const char* rest) {
    return std::to_string(big) + unit + (small == 0 ? "" : std::to_string(small) + rest);
  };
  if (seconds < 120) return std::to_string(seconds) + "s";
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (hours < 3) return std::to_string(minutes) + "m";
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return std::to_string(hours) + "h";
  if (days < 8) return two(days, "d", hours % 24, "h");
  if (days < 730) return std::to_string(days) + "d";
  if (days < 8 * 365) return two(days / 365, "y", days % 365, "d");
  return std::to_string(days / 365) + "y";
}

Column own_column(std::string header, std::function<std::string(const Json&)> text, bool is_wide) {
  return {.header = std::move(header),
          .cell = [text = std::move(text)](const Json& item, WallTime) -> Cell {
            std::string found = text(item);
            return {found.empty() ? "-" : cli::printable(found)};
          },
          .is_wide = is_wide};
}

Column text_column(std::string header, Path path, bool is_wide) {
  return own_column(
      std::move(header), [path = std::move(path)](const Json& item) { return text_at(item, path); },
      is_wide);
}

Column state_column(std::string header, Path path) {
  return {.header = std::move(header),
          .cell = [path = std::move(path)](const Json& item, WallTime) {
            return state_cell(text_at(item, path));
          }};
}

Column age_column(std::string header, Path path, bool is_wide) {
  return {.header = std::move(header),
          .cell = [path = std::move(path)](const Json& item, WallTime now) -> Cell {
            return {age(text_at(item, path), now)};
          },
          .is_wide = is_wide};
}

std::vector<std::string> table_lines(const Sheet& sheet, const std::vector<Json>& items,
                                     const Look& look) {
  cli::Table table;
  const auto shown = [&](const Column& column) {
    return !column.is_wide || look.form == Form::wide;
  };
  std::vector<Cell> headers;
  for (const Column& column : sheet.columns) {
    if (shown(column)) headers.push_back({column.header});
  }
  table.add(std::move(headers));
  for (const Json& item : items) {
    std::vector<Cell> cells;
    for (const Column& column : sheet.columns) {
      if (shown(column)) cells.push_back(column.cell(item, look.now));
    }
    table.add(std::move(cells));
  }
  std::vector<std::string> lines;
  const std::string text = table.text(0, look.colour, look.form == Form::wide ? 0 : look.width);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end + 1 - begin));
    begin = end + 1;
  }
  return lines;
}

std::string render_document(const Json& document, Form form) {
  const std::string text = safe_json(document.dump(2, ' ', false, Json::error_handler_t::replace));
  if (form != Form::yaml) return text + '\n';
  auto yaml = json_to_yaml(text);
  // Blocks of YAML hold characters as they are, so they are made safe line by line.
  std::string out;
  for (std::size_t begin = 0; yaml && begin < yaml->size();) {
    const auto end = std::min(yaml->find('\n', begin), yaml->size());
    out += cli::printable(std::string_view(*yaml).substr(begin, end - begin)) + '\n';
    begin = end + 1;
  }
  return out;
}

std::string render_list(const Sheet& sheet, const std::vector<Json>& items, const Look& look) {
  std::string out;
  switch (look.form) {
    case Form::json:
    case Form::yaml:
      return render_document({{"schema", sheet.schema}, {"items", items}}, look.form);
    case Form::name:
      for (const Json& item : items) out += cli::printable(sheet.name(item)) + '\n';
      return out;
    case Form::table:
    case Form::wide:
      for (const std::string& line : table_lines(sheet, items, look)) out += line;
      return out;
  }
  std::unreachable();
}

std::string render_item(const Sheet& sheet, const Json& item, const Look& look) {
  if (look.form != Form::json && look.form != Form::yaml) return render_list(sheet, {item}, look);
  Json document = item;
  document["schema"] = sheet.schema;
  return render_document(document, look.form);
}

}  // namespace gitops::ctl
