//! Names and colours of what is drawn, for every form of picture.

/// A colour as `0xRRGGBB`.
pub type Colour = u32;

/// Colours in one theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    /// Of the bar.
    pub fill: Colour,
    /// Of what is written on it.
    pub text: Colour,
}

/// How bars of a kind look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Name for programs.
    pub key: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Whether it accompanies something else, and is drawn thin and without a label.
    pub thin: bool,
    /// Whether it is hatched: nothing goes on meanwhile.
    pub hatched: bool,
    /// On a light ground.
    pub light: Paint,
    /// On a dark ground.
    pub dark: Paint,
}

/// The ground, and what is written on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Behind everything.
    pub ground: Colour,
    /// Behind labels of lanes and every second lane.
    pub band: Colour,
    /// Lines of the time axis.
    pub line: Colour,
    /// Text.
    pub ink: Colour,
    /// Text that matters less.
    pub faint: Colour,
    /// Violations.
    pub alarm: Colour,
    /// What ended badly.
    pub failed: Colour,
    /// What is selected, and what has the focus.
    pub focus: Colour,
}

/// The light theme.
pub const LIGHT: Ground = Ground {
    ground: 0xff_ff_ff,
    band: 0xf5_f7_fa,
    line: 0xdd_e3_ea,
    ink: 0x17_22_2e,
    faint: 0x55_63_72,
    alarm: 0xd0_16_2f,
    failed: 0xb4_54_0a,
    focus: 0x0b_5c_d5,
};

/// The dark theme.
pub const DARK: Ground = Ground {
    ground: 0x10_15_1c,
    band: 0x17_1e_27,
    line: 0x2a_34_40,
    ink: 0xe4_ea_f1,
    faint: 0x9a_a8_b7,
    alarm: 0xff_5c_6c,
    failed: 0xf0_9a_4a,
    focus: 0x6c_b2_ff,
};

const INK: Colour = 0x12_1c_27;
const PALE: Colour = 0xf4_f8_fc;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $key:literal $name:literal $shape:ident $light:literal $dark:literal;)*) => {
        /// What a bar stands for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $variant,)*
        }

        impl Kind {
            /// All kinds, in the order of the legend.
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            /// How it is drawn.
            pub const fn look(self) -> &'static Look {
                match self {
                    $(Self::$variant => &const { $shape($key, $name, $light, $dark) },)*
                }
            }
        }
    };
}

const fn thick(key: &'static str, name: &'static str, light: Colour, dark: Colour) -> Look {
    let (light, dark) = (Paint { fill: light, text: INK }, Paint { fill: dark, text: PALE });
    Look { key, name, thin: false, hatched: false, light, dark }
}

const fn hatched(key: &'static str, name: &'static str, light: Colour, dark: Colour) -> Look {
    Look { hatched: true, ..thick(key, name, light, dark) }
}

const fn thin(key: &'static str, name: &'static str, light: Colour, dark: Colour) -> Look {
    Look { thin: true, ..thick(key, name, light, dark) }
}

kinds! {
    /// A task waits before its preparation: for a path, a directory or a slot.
    Waiting "waiting" "waiting" hatched 0xe3_dc_c8 0x57_50_3c;
    /// A task's directory is prepared.
    Preparing "preparing" "preparing" thick 0x9c_c9_f0 0x2a_5d_8c;
    /// The server is told that a task starts.
    Starting "starting" "starting" thick 0x84_d6_d0 0x1c_69_68;
    /// An agent works.
    Running "running" "running" thick 0x8f_d1_9e 0x28_74_43;
    /// What an agent left is gathered.
    Settling "settling" "settling" thick 0xc9_b9_f0 0x5f_4c_9a;
    /// The server is told how a task ended.
    Reporting "reporting" "reporting" thick 0xf5_c9_78 0x86_5b_12;
    /// A task's directory is closed.
    Sealing "sealing" "sealing" thick 0xc3_cd_d8 0x4c_5a_6a;
    /// A slot is held.
    Held "held" "slot in use" thick 0xa9_c6_ec 0x35_57_86;
    /// A runtime is registered, or a daemon lives.
    Serving "serving" "serving" thick 0xcb_e6_d2 0x27_4d_38;
    /// A daemon ends in good order.
    Stopping "stopping" "stopping" thick 0xe6_d0_bd 0x6b_4a_33;
    /// A claim is on its way.
    Claim "claim" "claim" thick 0xf0_b6_cc 0x8b_3d_60;
    /// A heartbeat is on its way.
    Beat "beat" "heartbeat" thick 0xd4_dc_e4 0x3f_4c_5a;
    /// Another request is on its way.
    Request "request" "other request" thick 0xc4_dd_e6 0x35_5a_66;
    /// The server's patience with a task that has not started.
    Lease "lease" "lease" thin 0x0e_86_9c 0x4c_c6_d8;
    /// A task's mark on its directory.
    RootMark "root-mark" "mark on the directory" thin 0x7a_66_c2 0xa9_98_ee;
    /// A task's lock on a directory of the user.
    PathLock "path-lock" "lock on a path" thin 0xa8_69_10 0xe6_ae_55;
    /// A request about a task is on its way.
    Call "call" "request about the task" thin 0x5b_7a_94 0x8f_b0_cc;
    /// A wait with its reason.
    Wait "wait" "wait, with its reason" thin 0x8a_7a_50 0xc0_b0_80;
}

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// The server says that there is work.
    Hint,
    /// Something ended well.
    Completed,
    /// Something ended badly.
    Failed,
    /// Something was ended.
    Cancelled,
    /// A lease was extended.
    Extended,
    /// A watchdog bit, or somebody asked for an end.
    Stop,
    /// A remark.
    Note,
}

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyph {
    /// A triangle that points down.
    Down,
    /// A disc.
    Disc,
    /// Two crossed lines.
    Cross,
    /// A square.
    Square,
    /// A short vertical line.
    Tick,
    /// A square on its corner.
    Diamond,
}

/// How marks of a kind look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkLook {
    /// Name for programs.
    pub key: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Its shape.
    pub glyph: Glyph,
    /// Its colour on a light ground.
    pub light: Colour,
    /// Its colour on a dark ground.
    pub dark: Colour,
}

impl MarkKind {
    /// All kinds, in the order of the legend.
    pub const ALL: [Self; 7] =
        [Self::Hint, Self::Completed, Self::Failed, Self::Cancelled, Self::Extended, Self::Stop, Self::Note];

    /// How it is drawn.
    pub const fn look(self) -> MarkLook {
        let (key, name, glyph, light, dark) = match self {
            Self::Hint => ("hint", "hint of work", Glyph::Down, 0xb0_2a_78, 0xf0_8c_c4),
            Self::Completed => ("completed", "completed", Glyph::Disc, 0x1a_7f_3c, 0x62_d4_88),
            Self::Failed => ("failed", "failed", Glyph::Cross, LIGHT.failed, DARK.failed),
            Self::Cancelled => ("cancelled", "cancelled", Glyph::Square, 0x5b_66_73, 0xb0_bc_c8),
            Self::Extended => ("extended", "lease extended", Glyph::Tick, 0x0b_6f_82, 0x7a_dc_ea),
            Self::Stop => ("stop", "stop or watchdog", Glyph::Diamond, 0x7a_3e_12, 0xf2_b0_84),
            Self::Note => ("note", "remark", Glyph::Diamond, 0x2b_54_a8, 0x94_b8_ff),
        };
        MarkLook { key, name, glyph, light, dark }
    }
}

/// In which way something led to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArrowKind {
    /// A hint led to a claim.
    Hint,
    /// A claim brought a task.
    Claim,
}

impl ArrowKind {
    /// All kinds, in the order of the legend.
    pub const ALL: [Self; 2] = [Self::Hint, Self::Claim];

    /// Name for programs, name for people, and colours on light and dark ground.
    pub const fn look(self) -> (&'static str, &'static str, Colour, Colour) {
        match self {
            Self::Hint => ("hint-claim", "a hint led to a claim", 0xb0_2a_78, 0xf0_8c_c4),
            Self::Claim => ("claim-task", "a claim brought a task", 0x3a_6e_b5, 0x86_b4_f0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: Colour) -> f64 {
        let channel = |shift: u32| {
            let c = f64::from((colour >> shift) & 0xff) / 255.0;
            if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(16) + 0.7152 * channel(8) + 0.0722 * channel(0)
    }

    /// As WCAG 2 defines it.
    fn contrast(a: Colour, b: Colour) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn everything_written_can_be_read() {
        for kind in Kind::ALL.map(Kind::look) {
            for paint in [kind.light, kind.dark] {
                assert!(kind.thin || contrast(paint.fill, paint.text) >= 4.5, "{}", kind.key);
            }
        }
        for theme in [LIGHT, DARK] {
            for on in [theme.ground, theme.band] {
                for text in [theme.ink, theme.faint, theme.alarm, theme.failed, theme.focus] {
                    assert!(contrast(on, text) >= 4.5, "{text:06x} on {on:06x}");
                }
            }
        }
    }

    #[test]
    fn everything_thin_can_be_seen() {
        let kinds = Kind::ALL.map(Kind::look).into_iter().filter(|look| look.thin);
        let thin = kinds.map(|look| (look.light.fill, look.dark.fill));
        let marks = MarkKind::ALL.map(|kind| (kind.look().light, kind.look().dark));
        let arrows = ArrowKind::ALL.map(|kind| (kind.look().2, kind.look().3));
        for (light, dark) in thin.chain(marks).chain(arrows) {
            assert!(
                contrast(light, LIGHT.ground) >= 3.0 && contrast(light, LIGHT.band) >= 3.0,
                "{light:06x}"
            );
            assert!(contrast(dark, DARK.ground) >= 3.0 && contrast(dark, DARK.band) >= 3.0, "{dark:06x}");
        }
    }

    #[test]
    fn keys_are_single_and_plain() {
        let mut keys: Vec<_> = Kind::ALL.iter().map(|kind| kind.look().key).collect();
        keys.extend(ArrowKind::ALL.iter().map(|kind| kind.look().0));
        assert!(keys.iter().all(|key| key.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }
}
