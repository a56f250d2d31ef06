"""Runs a Python program up to the parsing of its command line, and prints the options that its
parser (argparse, optparse or click) really has, as JSON, in place of its help."""

import json
import os
import runpy
import sys


def finish(flags):
    """Prints the spellings of each option, and whether it takes a value."""
    os.write(3, json.dumps(flags).encode())
    os._exit(0)


def of_argparse(parser, *_args, **_more):
    import argparse

    hidden = argparse.SUPPRESS
    actions = [action for action in parser._actions if action.option_strings]
    finish([[a.option_strings, a.nargs != 0] for a in actions if a.help != hidden])


def of_optparse(parser, *_args, **_more):
    import optparse

    options = list(parser.option_list)
    for group in parser.option_groups:
        options += group.option_list
    shown = [option for option in options if option.help != optparse.SUPPRESS_HELP]
    finish([[o._short_opts + o._long_opts, bool(o.nargs)] for o in shown])


def of_click(command, context, *_args, **_more):
    flags = []
    for one in command.get_params(context):
        if getattr(one, "opts", None) and one.param_type_name == "option" and not one.hidden:
            has_value = not one.is_flag and not one.count
            flags.append([one.opts + one.secondary_opts, has_value])
    finish(flags)


def watch():
    import argparse
    import optparse

    for name in ("print_help", "format_help"):
        setattr(argparse.ArgumentParser, name, of_argparse)
        setattr(optparse.OptionParser, name, of_optparse)
    try:
        import click
    except ImportError:
        return
    click.Command.get_help = of_click


watch()
program, sys.argv = sys.argv[1], sys.argv[1:]
runpy.run_path(program, run_name="__main__")
