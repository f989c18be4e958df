#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gitops {

// Text that must not reach a log, metric, error or core file: has no stream operator and no
// formatter, and wipes its memory on destruction and assignment.
class Secret {
 public:
  Secret() = default;
  // Takes over the text and wipes the argument.
  explicit Secret(std::string text);
  Secret(const Secret& other);
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret other) noexcept;
  ~Secret();

  // Returns the text itself, for the one call that sends it.
  [[nodiscard]] std::string_view reveal() const { return {text_.data(), text_.size()}; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  // Compares in constant time.
  [[nodiscard]] bool operator==(const Secret& other) const;

 private:
  std::vector<char> text_;  // moves by pointer; a short std::string would leave copies behind
};

}  // namespace gitops
