"""Published medical formulas, in the units that calculators.toml gives inputs and answers; it names their sources.

    creatinine_clearance(age=60, weight=72, creatinine=1.0, female=False)       # 80.0 ml/min

The body of a function is also what a question's gold program shows (data/calculators/drawing.py), so each stands alone.
"""

from __future__ import annotations

import math
from datetime import date, timedelta


def body_mass_index(weight: float, height: float) -> float:
    return weight / (height / 100) ** 2


def body_surface_mosteller(weight: float, height: float) -> float:
    return math.sqrt(weight * height / 3600)


def body_surface_dubois(weight: float, height: float) -> float:
    return 0.007184 * weight**0.425 * height**0.725


def ideal_body_weight(height: float, female: bool) -> float:
    return (45.5 if female else 50) + 2.3 * (height / 2.54 - 60)


def mean_arterial_pressure(systolic: float, diastolic: float) -> float:
    return diastolic + (systolic - diastolic) / 3


def shock_index(rate: float, systolic: float) -> float:
    return rate / systolic


def qtc_bazett(qt: float, rate: float) -> float:
    return qt / math.sqrt(60 / rate)


def qtc_fridericia(qt: float, rate: float) -> float:
    return qt / (60 / rate) ** (1 / 3)


def creatinine_clearance(age: int, weight: float, creatinine: float, female: bool) -> float:
    return (140 - age) * weight / (72 * creatinine) * (0.85 if female else 1)


def gfr_mdrd(creatinine: float, age: int, female: bool) -> float:
    return 175 * creatinine**-1.154 * age**-0.203 * (0.742 if female else 1)


def gfr_ckd_epi(creatinine: float, age: int, female: bool) -> float:
    ratio = creatinine / (0.7 if female else 0.9)
    bend = min(ratio, 1) ** (-0.241 if female else -0.302) * max(ratio, 1) ** -1.2
    return 142 * bend * 0.9938**age * (1.012 if female else 1)


def sodium_excretion(urine_sodium: float, sodium: float, urine_creatinine: float, creatinine: float) -> float:
    return 100 * urine_sodium * creatinine / (sodium * urine_creatinine)


def anion_gap(sodium: float, chloride: float, bicarbonate: float) -> float:
    return sodium - chloride - bicarbonate


def corrected_anion_gap(sodium: float, chloride: float, bicarbonate: float, albumin: float) -> float:
    return sodium - chloride - bicarbonate + 2.5 * (4.4 - albumin)


def corrected_calcium(calcium: float, albumin: float) -> float:
    return calcium + 0.8 * (4 - albumin)


def corrected_sodium(sodium: float, glucose: float) -> float:
    return sodium + 0.016 * (glucose - 100)


def osmolality(sodium: float, glucose: float, urea: float) -> float:
    return 2 * sodium + glucose / 18 + urea / 2.8


def water_deficit(weight: float, sodium: float) -> float:
    return 0.6 * weight * (sodium / 140 - 1)


def expected_pco2(bicarbonate: float) -> float:
    return 1.54 * bicarbonate + 8.36


def alveolar_gradient(fio2: float, pco2: float, po2: float) -> float:
    return fio2 / 100 * (760 - 47) - pco2 / 0.8 - po2


def ldl_friedewald(cholesterol: float, hdl: float, triglycerides: float) -> float:
    return cholesterol - hdl - triglycerides / 5


def homa_ir(insulin: float, glucose: float) -> float:
    return insulin * glucose / 22.5


def apri(ast: float, upper_limit: float, platelets: float) -> float:
    return 100 * ast / upper_limit / platelets


def fib4(age: int, ast: float, alt: float, platelets: float) -> float:
    return age * ast / (platelets * math.sqrt(alt))


def meld(bilirubin: float, inr: float, creatinine: float) -> int:
    b, i, c = max(bilirubin, 1), max(inr, 1), min(max(creatinine, 1), 4)
    return round(3.78 * math.log(b) + 11.2 * math.log(i) + 9.57 * math.log(c) + 6.43)


def meld_sodium(meld: int, sodium: float) -> float:
    na = min(max(sodium, 125), 140)
    return meld - na - 0.025 * meld * (140 - na) + 140


def child_pugh(bilirubin: float, albumin: float, inr: float, ascites: int, encephalopathy: int) -> int:
    score = 1 + (bilirubin >= 2) + (bilirubin > 3)
    score += 1 + (albumin <= 3.5) + (albumin < 2.8)
    score += 1 + (inr >= 1.7) + (inr > 2.3)
    return score + ascites + encephalopathy


def glasgow_coma(eyes: int, verbal: int, motor: int) -> int:
    return eyes + verbal + motor


def curb65(confusion: bool, urea: float, breaths: float, systolic: float, diastolic: float, age: int) -> int:
    return confusion + (urea > 7) + (breaths >= 30) + (systolic < 90 or diastolic <= 60) + (age >= 65)


def cha2ds2_vasc(
    age: int, female: bool, failure: bool, hypertension: bool, diabetes: bool, stroke: bool, vascular: bool
) -> int:
    score = (age >= 65) + (age >= 75) + female + failure + hypertension + diabetes
    return score + 2 * stroke + vascular


def wells_embolism(
    leg_signs: bool, likeliest: bool, rate: float, immobile: bool, earlier: bool, hemoptysis: bool, cancer: bool
) -> float:
    score = 3 * leg_signs + 3 * likeliest + 1.5 * (rate > 100)
    return score + 1.5 * immobile + 1.5 * earlier + hemoptysis + cancer


def centor(exudate: bool, nodes: bool, fever: bool, cough: bool) -> int:
    return exudate + nodes + fever + (not cough)


def qsofa(breaths: float, systolic: float, altered: bool) -> int:
    return (breaths >= 22) + (systolic <= 100) + altered


def daily_fluid(weight: float) -> float:
    return 100 * min(weight, 10) + 50 * min(max(weight - 10, 0), 10) + 20 * max(weight - 20, 0)


def burn_fluid(weight: float, burned: float) -> float:
    return 4 * weight * burned


def due_date(last_period: date) -> date:
    return last_period + timedelta(days=280)
