#pragma once

#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control-plane/resolvers/table.hpp"

// Documents for every field of the schema, made from its text. So a new field is tested without anybody remembering it.
namespace gitops::control_plane_server {

class SchemaDocuments {
 public:
  struct Member {
    std::string name;
    std::string type;  // "[String!]!"
    std::vector<Member> arguments = {};
  };

  SchemaDocuments() {
    std::istringstream lines{std::string(schema_text())};
    std::string type;
    bool is_enum = false;
    for (std::string line; std::getline(lines, line);) {
      for (const std::string_view word : {"type ", "input ", "enum ", "interface "}) {
        if (!line.starts_with(word) || !line.ends_with('{')) continue;
        type = line.substr(word.size(), line.find_first_of(" {", word.size()) - word.size());
        is_enum = word == "enum ";
      }
      if (line.starts_with("union ")) unions_.insert(line.substr(6, line.find(' ', 6) - 6));
      if (line == "}") type.clear();
      if (type.empty() || !line.starts_with("  ") || line.starts_with("  \"")) continue;
      if (is_enum) {
        std::istringstream values(line);
        for (std::string value; values >> value;) enums_[type].push_back(value);
      } else {
        types_[type].push_back(member_of(line.substr(2)));
      }
    }
  }

  // Makes the value of a text argument. `path` is its place: "args.runtime".
  using Text = std::function<std::string(const std::string& path)>;

  // Returns a document with one root field. With `all`, it has every argument, else the required ones.
  [[nodiscard]] std::string document(const FieldRow& row, bool all, const Text& text) const {
    const auto& root = types_.at(row.root == RootType::query      ? "Query"
                                 : row.root == RootType::mutation ? "Mutation"
                                                                  : "Subscription");
    for (const auto& field : root) {
      if (field.name != row.field) continue;
      std::string out = row.root == RootType::query      ? "query{"
                        : row.root == RootType::mutation ? "mutation{"
                                                         : "subscription{";
      out += field.name + arguments(field.arguments, all, text);
      const auto type = named(field.type);
      // What a list has, not only that it is one.
      if (type.ends_with("Slice")) {
        out += "{edges{node{__typename}}}";
      } else if (types_.contains(type) || unions_.contains(type)) {
        out += "{__typename}";
      }
      return out + "}";
    }
    return {};
  }

 private:
  static std::string named(std::string type) {
    std::erase_if(type, [](char c) { return c == '[' || c == ']' || c == '!'; });
    return type;
  }
  // Reads "name(argument: Type, …): Type".
  static Member member_of(std::string_view line) {
    Member member;
    const auto end = line.find_first_of("(:");
    member.name = line.substr(0, end);
    const auto colon = line.rfind(": ");
    member.type = line.substr(colon + 2, line.find_first_of(" @", colon + 2) - colon - 2);
    if (line[end] != '(') return member;
    auto rest = line.substr(end + 1, line.rfind(')') - end - 1);
    while (!rest.empty()) {
      const auto comma = std::min(rest.find(", "), rest.size());
      member.arguments.push_back(member_of(rest.substr(0, comma)));
      rest.remove_prefix(std::min(comma + 2, rest.size()));
    }
    return member;
  }

  [[nodiscard]] std::string arguments(const std::vector<Member>& members, bool all,
                                      const Text& text) const {
    const auto inner = list(members, all, text, "");
    return inner.empty() ? std::string() : "(" + inner + ")";
  }
  [[nodiscard]] std::string list(const std::vector<Member>& members, bool all, const Text& text,
                                 const std::string& path) const {
    std::string out;
    for (const auto& member : members) {
      if (!all && !member.type.ends_with('!')) continue;
      auto given = value(member.type, all, text, path + member.name);
      if (given.empty()) continue;
      out += (out.empty() ? "" : ", ") + member.name + ": " + given;
    }
    return out;
  }
  [[nodiscard]] std::string value(const std::string& type, bool all, const Text& text,
                                  const std::string& path) const {
    if (type.starts_with('[')) {
      const auto inner = value(named(type), all, text, path);
      return inner.empty() ? std::string() : "[" + inner + "]";
    }
    const auto name = named(type);
    if (const auto words = enums_.find(name); words != enums_.end()) return words->second.front();
    if (const auto members = types_.find(name); members != types_.end()) {
      return "{" + list(members->second, all, text, path + ".") + "}";
    }
    if (name == "Int" || name == "Float") return "1";
    if (name == "Boolean") return "false";
    return quoted(text(path));
  }
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + "\"";
  }

  std::map<std::string, std::vector<Member>> types_;
  std::map<std::string, std::vector<std::string>> enums_;
  std::set<std::string> unions_;
};

}  // namespace gitops::control_plane_server
