#include "common/cli/man_pages.hpp"

#include <algorithm>
#include <string_view>

#include "common/cli/command.hpp"
#include "common/core/process.hpp"

namespace gitops::cli {

namespace {

constexpr std::string_view kExitStatus =
    ".SH EXIT STATUS\n"
    "0 done, 1 failed, 2 wrong usage, 3 not known, 4 not found, 5 refused, 130 interrupted.\n";

// Returns text without characters that roff interprets.
std::string escaped(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    begins_line = c == '\n';
  }
  return out;
}

std::string page_name(const Program& program, const Command& command) {
  std::string name = program.name + "-" + command.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string begin(const std::string& name, const std::string& summary) {
  std::string title = name;
  for (char& c : title) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return ".TH " + escaped(title) + " 1 \"\" \"" + std::string(version()) + "\"\n.SH NAME\n" +
         escaped(name) + " \\- " + escaped(summary) + "\n.SH SYNOPSIS\n";
}

// Lines as they are.
std::string literal(std::string_view text) {
  return ".nf\n" + escaped(text) + (text.ends_with('\n') ? "" : "\n") + ".fi\n";
}

std::string term(const std::string& name, const std::string& help) {
  return ".TP\n\\fB" + escaped(name) + "\\fR\n" + escaped(help) + "\n";
}

std::string command_page(const Program& program, const Command& command) {
  std::string out = begin(page_name(program, command), command.summary) + "\\fB" +
                    escaped(program.name + " " + command.name) + "\\fR";
  for (const Operand& operand : command.operands) {
    out += operand.is_required ? " \\fI" + escaped(operand.name) + "\\fR"
                               : " [\\fI" + escaped(operand.name) + "\\fR]";
  }
  out += " [flags]\n";
  const auto examples = command.description.find("Examples:\n");
  const auto about = std::string_view(command.description).substr(0, examples);
  if (!about.empty()) out += ".SH DESCRIPTION\n" + literal(about);
  if (!command.operands.empty()) out += ".SH ARGUMENTS\n";
  for (const Operand& operand : command.operands) out += term(operand.name, operand.help);
  out += ".SH OPTIONS\n";
  ConfigReader reader(program.name + " " + command.name, command.summary, ProgramKind::command);
  if (command.bind) command.bind(reader);
  for (const auto& flag : reader.flags()) {
    std::string name = flag.letter == 0 ? "" : std::string("-") + flag.letter + ", ";
    name += "--" + flag.name + (flag.kind.empty() ? "" : "=" + flag.kind);
    out += term(name, flag.help);
  }
  if (examples != std::string::npos) {
    out += ".SH EXAMPLES\n" + literal(std::string_view(command.description).substr(examples + 10));
  }
  return out + std::string(kExitStatus) + ".SH SEE ALSO\n" + escaped(program.name) + "(1)\n";
}

std::string program_page(const Program& program) {
  std::string out = begin(program.name, program.summary) + "\\fB" + escaped(program.name) +
                    "\\fR \\fICOMMAND\\fR [flags]\n.SH COMMANDS\n";
  for (const Command& command : program.commands) {
    out += term(command.name, command.summary);
  }
  return out + std::string(kExitStatus);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> man_pages(const Program& program) {
  std::vector<std::pair<std::string, std::string>> pages{
      {program.name + ".1", program_page(program)}};
  for (const Command& command : program.commands) {
    pages.emplace_back(page_name(program, command) + ".1", command_page(program, command));
  }
  return pages;
}

}  // namespace gitops::cli
