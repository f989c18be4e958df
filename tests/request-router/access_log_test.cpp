#include "request-router/access_log.hpp"

#include <array>
#include <csignal>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <prometheus/counter.h>
#include <unistd.h>

#include "support/process.hpp"

namespace gitops::router {
namespace {

// Lines of different lengths that contain their number.
std::string numbered(int number) {
  return std::to_string(number) + std::string(static_cast<std::size_t>(number % 700), '.') + "\n";
}

// A pipe with a non-blocking read end.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) == 0) ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close_reader();
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_reader() {
    if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
  }
  // The bytes in the pipe.
  [[nodiscard]] std::string read() const {
    std::string text;
    std::array<char, 65536> block;
    while (true) {
      const auto size = ::read(ends_[0], block.data(), block.size());
      if (size <= 0) return text;
      text.append(block.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(LineWriter, DropsAndCountsWhatAPipeThatNobodyReadsDoesNotTake) {
  constexpr int kLines = 4'000;  // far more than the pipe and the log's buffer hold
  const Pipe pipe;
  Counter dropped;
  LineWriter writer(pipe.writer(), dropped);
  for (int i = 0; i < kLines; i += 2) writer.write(numbered(i) + numbered(i + 1));
  EXPECT_FALSE(writer.flush());
  EXPECT_GT(dropped.Value(), 100);

  // A reader that comes back gets the lines that were kept, whole and in order.
  std::string text = pipe.read();
  while (!writer.flush()) text += pipe.read();
  text += pipe.read();
  int count = 0;
  int last = -1;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const int number = std::stoi(text.substr(at, 8));
    ASSERT_GT(number, last);
    ASSERT_EQ(text.substr(at, numbered(number).size()), numbered(number));
    at += numbered(number).size();
    last = number;
  }
  EXPECT_EQ(count + static_cast<int>(dropped.Value()), kLines);
  EXPECT_GT(count, 300);

  writer.write(numbered(kLines));
  EXPECT_EQ(pipe.read(), numbered(kLines));
}

TEST(LineWriter, ToleratesAReaderThatHasGone) {
  Pipe pipe;
  Counter dropped;
  LineWriter writer(pipe.writer(), dropped);
  std::signal(SIGPIPE, SIG_IGN);
  pipe.close_reader();
  for (int i = 0; i < 4'000; ++i) writer.write(numbered(i));
  EXPECT_FALSE(writer.flush());
  EXPECT_GT(dropped.Value(), 100);
}

TEST(LineWriter, WritesEverythingToAFile) {
  const test::TempDir folder;
  const auto path = folder / "log";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  Counter dropped;
  LineWriter writer(file, dropped);
  std::string all;
  for (int i = 0; i < 4'000; ++i) {
    all += numbered(i);
    writer.write(numbered(i));
  }
  ::close(file);
  EXPECT_EQ(test::read_file(path), all);
  EXPECT_EQ(dropped.Value(), 0);
}

}  // namespace
}  // namespace gitops::router
