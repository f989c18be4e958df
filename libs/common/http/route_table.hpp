#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gitops::http {

// Values of a pattern's parameters, percent-decoded once. They are UTF-8 without control
// characters, and only that of {rest...} may be empty. A value may contain '/' (sent as %2F), but
// neither "." nor ".." as a segment. Valid as long as the table.
class RouteParameters {
 public:
  // Returns a parameter of the pattern. Throws std::logic_error if the pattern has none of that
  // name.
  [[nodiscard]] const std::string& at(std::string_view name) const;

 private:
  friend class RouteTable;
  std::vector<std::pair<std::string_view, std::string>> values_;
};

struct RouteMatch {
  enum class Kind {
    found,
    not_found,           // 404
    method_not_allowed,  // 405 with `allow`
    options,             // OPTIONS without a row of its own: 204 with `allow`
    malformed,           // 400: malformed encoding, or "." or ".." as a segment
  };
  Kind kind = Kind::not_found;
  std::size_t row = 0;  // found
  RouteParameters parameters = {};
  std::string allow = {};  // "GET, HEAD, POST"
};

// Table that finds the row for a request; no I/O. A pattern is a path whose segments are text or
// {parameter}: "/applications/{name}/logs". Its last segment may be {rest...}, which matches one or
// more segments. The path of a request is split at '/', then decoded, then compared; "/a" and "/a/"
// are different paths. If several rows match, text takes precedence over a parameter and a
// parameter over {rest...}, from the left. A row for GET also matches HEAD.
class RouteTable {
 public:
  struct Row {
    std::string method;
    std::string pattern;
  };

  // Throws std::logic_error for a malformed pattern or two rows that match the same requests.
  explicit RouteTable(std::vector<Row> rows);

  // Finds the row. `path` is the request target up to '?'.
  [[nodiscard]] RouteMatch match(std::string_view method, std::string_view path) const;

 private:
  struct Segment {
    enum class Kind { text, parameter, rest };  // best match first
    Kind kind = Kind::text;
    std::string text;  // or the name of the parameter
  };
  struct Pattern {
    std::size_t row = 0;
    std::string method;
    std::vector<Segment> segments;
  };

  static std::vector<Segment> parse(const std::string& pattern);
  // Returns whether `a` is tried before `b`.
  static bool is_better(const Pattern& a, const Pattern& b);

  std::vector<Pattern> patterns_;  // best first
};

}  // namespace gitops::http
