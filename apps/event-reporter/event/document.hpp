#pragma once

#include <memory>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"

namespace simdjson::dom {
class document;
}

namespace gitops::reporter {

// A parsed JSON text that is kept for the time of a report. simdjson needs eleven times the text in
// memory for the worst case while it parses; all documents of a thread share this memory, and each
// keeps only its own part, about twice the text. Can be moved but not copied; views stay valid when
// it moves.
class Document {
 public:
  Document();
  ~Document();
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  // Parses the text, which must be one JSON object; `what` names it in the error. Call it once.
  Result<JsonView> parse(std::string_view text, std::string_view what);

 private:
  std::unique_ptr<simdjson::dom::document> kept_;
};

}  // namespace gitops::reporter
