# Waits of Perl: for input, children and time, within sort, regular expressions, ties and destructors.
use strict;
use warnings;
use threads;
use Time::HiRes;

package Sleeper;
sub new { return bless {}, shift }
sub TIESCALAR { return bless {}, shift }
sub FETCH { sleep 600 }
sub DESTROY { sleep 600 }

package main;
sub descend { my ($depth, $last) = @_; return $depth ? descend($depth - 1, $last) : $last->() }
my @ways = (
  sub { sleep 600 },
  sub { Time::HiRes::sleep(600) },
  sub { select(undef, undef, undef, 600) },
  sub { my $line = <STDIN> },
  sub { system("sleep", "600") },
  sub { my $text = `sleep 600` },
  sub { my @sorted = sort { sleep 600 } 2, 1 },
  sub { "a" =~ /a(?{ sleep 600 })/ },
  sub { tie my $tied, "Sleeper"; my $value = "$tied" },
  sub { my $sleeper = Sleeper->new; undef $sleeper },
  sub { eval { local $SIG{ALRM} = sub { die }; sleep 600 } },
  sub { descend(20, sub { sleep 600 }) },
  sub { my @mapped = map { sleep 600 } 1 .. 3 },
);
my @started = map { threads->create($_) } @ways[4 .. $#ways];
for my $way (@ways) { fork or $way->() }
$started[0]->join;
